"""``python -m tests.attacks --json FILE [--data FOLDER] [--methods NAME ...] [--sites N]``: attacks on public tables.

Every CSV file of the folder that has numeric features and the last column ``label`` is trained on with each method, at
plants with the default policy, and every attack is made on what left them. A line of the result: ``table, method, mode,
attack, rows, rows_found``; mode is ``per-site`` for single plants' answers and ``sum`` for sums over the plants.
``exposure`` is what the plants' own figures said; ``refused`` names the refusal that ended a run. Guards draw by
``--draw``, so a run can be made again. Beside the methods there are tunings as "auto" has them, each with a training
after it (``tests.attacks.tunings``).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from models.cohorts.dealing import LEAST_COHORT
from models.methods.catalogue import METHODS, get_method
from services.site_agent.rules.policy import Refusal
from tests.attacks import finding
from tests.attacks.gated_plants import Plant, dealt, honest_run, question, stacked
from tests.attacks.tables import read_table
from tests.attacks.tunings import TUNINGS, rows_found, tuned_group
from tests.attacks.versions import found_between

STEEPNESS = 1e4  # as steep as the default policy lets through at a plan's default radius
QUESTIONS = 30  # of a bisection
MOST_ROWS = 200  # of a table: the rest is left out, so that all tables and methods take minutes
ATTACKS = ("pairwise", "differences", "span", "bisection", "drop-one rounds", "drop-one runs", "a row more")
MODES = ("per-site", "sum")
EVERYTHING = (*sorted(METHODS), *TUNINGS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where a sum gave a row away, or an attack found more than the plants said."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BALLAST_DATA_DIR", "../shared/datasets")))
    parser.add_argument("--methods", nargs="+", choices=EVERYTHING, default=EVERYTHING, metavar="NAME")
    parser.add_argument("--sites", type=int, default=4)
    parser.add_argument("--tables", nargs="+", help="names of tables, without .csv (default: all that fit)")
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="rows of a table that are used")
    parser.add_argument("--draw", type=int, default=0, help="number by which the plants' guards draw (default: 0)")
    chosen = parser.parse_args(arguments)
    if chosen.sites < 2:
        parser.error(f"--sites must be at least 2, got {chosen.sites}")
    if chosen.draw < 0:
        parser.error(f"--draw must be at least 0, got {chosen.draw}")
    if chosen.sites < LEAST_COHORT:
        print(f"left out sums: a cohort has at least {LEAST_COHORT} plants", file=sys.stderr)
    for method in chosen.methods:
        if method in METHODS and not get_method(method).on_sums:
            print(f"left out sums of {method}: its server needs the answers of single plants", file=sys.stderr)
    lines: list[dict[str, Any]] = []
    for path in sorted(chosen.data.glob("*.csv")):
        if chosen.tables and path.stem not in chosen.tables:
            continue
        try:
            features, labels, missing = read_table(path)
        except ValueError as error:
            print(f"left out {path.stem}: {error}", file=sys.stderr)
            continue
        if missing:
            print(f"left out {missing} rows of {path.stem} with missing cells", file=sys.stderr)
        kept = np.random.default_rng(0).permutation(labels.size)[: chosen.rows]
        for method in chosen.methods:
            for mode in MODES:
                on_sums = method in TUNINGS or get_method(method).on_sums
                if mode == "sum" and (not on_sums or chosen.sites < LEAST_COHORT):
                    continue
                attacked = attack_tuning if method in TUNINGS else attack
                found = attacked(features[kept], labels[kept], method, mode, chosen.sites, chosen.draw)
                lines += [{"table": path.stem, "method": method, "mode": mode, **line} for line in found]
                for line in lines[-len(found) :]:
                    print(" ".join(f"{value}" for value in line.values()), flush=True)
    chosen.json.write_text(json.dumps(lines, indent=1) + "\n")
    return int(any(failed(line) for line in lines))


def failed(line: dict[str, Any]) -> bool:
    """Whether a line says what must not be."""
    given_away = line["mode"] == "sum" and line["attack"] != "span" and line["rows_found"] > 0
    return given_away or line["rows_found"] > line["exposure"]


def attack(
    features: FloatArray, labels: FloatArray, name: str, mode: str, n_sites: int, draw: int = 0
) -> list[dict[str, Any]]:
    """Every attack on plants that share the rows; all but the bisection on the traffic of honest runs."""
    sites = dealt(features, labels, n_sites, get_method(name))
    plants = {site: Plant(problem, draw=draw) for site, problem in sites.items()}
    cohorts = {"all": tuple(plants)} if mode == "sum" else None
    honest_run(plants, name, cohorts=cohorts)
    group = list(plants.values())
    seen, rows = views(group, mode)
    counts = {
        "pairwise": sum(len(finding.pairwise(*each)) for each in zip(seen, rows, strict=True)),
        "differences": sum(len(finding.differences(*each)) for each in zip(seen, rows, strict=True)),
        "span": spanned(group, mode),
    }
    said = dict(zip(counts, figures(group), strict=True))
    counts["drop-one rounds"], counts["drop-one runs"] = dropped(plants, name, mode)
    said["drop-one rounds"] = said["drop-one runs"] = figures(group)[1]
    fresh = [Plant(problem, draw=draw) for problem in sites.values()]
    counts["bisection"] = bisected(fresh, name, mode)
    said["bisection"] = figures(fresh)[1]
    came, later = found_between(sites, name, mode, draw)
    counts["a row more"] = len(came)
    said["a row more"] = figures(later)[1]
    return _lines({each: counts[each] for each in ATTACKS}, said, [*group, *fresh, *later], labels.size)


def attack_tuning(
    features: FloatArray, labels: FloatArray, name: str, mode: str, n_sites: int, draw: int = 0
) -> list[dict[str, Any]]:
    """What an honest tuning gives away, and the training after it."""
    tuned = tuned_group(features, labels, name, mode, n_sites, draw=draw)
    plants = [each.plant for each in tuned]
    counts = rows_found(tuned, mode) | {"span": spanned(plants, mode)}
    return _lines(counts, dict(zip(counts, figures(plants), strict=True)), plants, labels.size)


def _lines(
    counts: Mapping[str, int], said: Mapping[str, int], plants: Sequence[Plant], n_rows: int
) -> list[dict[str, Any]]:
    refused = sorted({plant.refused for plant in plants} - {""})
    more = {"refused": ", ".join(refused)} if refused else {}
    return [
        {"attack": each, "rows": n_rows, "rows_found": counts[each], "exposure": said[each], **more}
        for each in counts
    ]


def views(plants: Sequence[Plant], mode: str) -> tuple[list[FloatArray], list[FloatArray]]:
    """Vectors that a server sees, and the rows that may be in them: by plant, or of the sums."""
    if mode == "per-site":
        return [plant.vectors() for plant in plants], [plant.rows for plant in plants]
    complete = min(len(plant.sent) for plant in plants)
    return [stacked([plant.sent[:complete] for plant in plants])], [np.vstack([plant.rows for plant in plants])]


def spanned(plants: Sequence[Plant], mode: str) -> int:
    """Rows that some combination of the vectors gives to one who knows every coefficient."""
    known = [[rows for account in plant.accounts for rows in account.rows] for plant in plants]
    if mode == "per-site":
        return sum(len(finding.span(np.array(each), plant.rows)) for each, plant in zip(known, plants, strict=True))
    complete = min(len(each) for each in known)
    if not complete:
        return 0
    together = np.hstack([np.array(each[:complete]) for each in known])
    return len(finding.span(together, np.vstack([plant.rows for plant in plants])))


def figures(plants: Sequence[Plant]) -> tuple[int, int, int]:
    """What the plants say of their answers: rows by pairs, by differences, and by any combination."""
    said = [plant.figures for plant in plants]
    return sum(each.by_pairs for each in said), sum(each.by_differences for each in said), sum(
        each.leveraged for each in said
    )


def dropped(plants: dict[str, Plant], name: str, mode: str) -> tuple[int, int]:
    """Rows that sums over sets of plants give that differ by one plant: between rounds, and between two runs.

    Between rounds the same questions are summed over all and over all but one, so their differences are one plant's
    answers. Between runs the second is without the last plant, and everything of both is held to everything.
    """
    group, last = list(plants.values()), list(plants.values())[-1]
    complete = min(len(plant.sent) for plant in group)
    between_rounds = 0
    for plant in group:
        others = [each.sent[:complete] for each in group if each is not plant]
        apart = stacked([*others, plant.sent[:complete]]) - stacked(others) if complete else np.zeros((0, 1))
        between_rounds += len(finding.differences(apart, plant.rows))
    fewer = {site: plant for site, plant in plants.items() if plant is not last}
    first = [len(plant.sent) for plant in group]
    if mode == "per-site" or len(fewer) >= LEAST_COHORT:  # a smaller cohort is refused
        honest_run(fewer, name, cohorts={"all": tuple(fewer)} if mode == "sum" else None, run="run-2")
    before = stacked([plant.sent[:complete] for plant in group])
    shortest = min(len(plant.sent) - start for plant, start in zip(group[:-1], first, strict=False))
    after = stacked([plant.sent[start : start + shortest] for plant, start in zip(group[:-1], first, strict=False)])
    rows = np.vstack([plant.rows for plant in group])
    both = [each for each in (before, after) if each.size]
    between_runs = len(finding.differences(np.vstack(both), rows)) if both else 0
    if mode == "per-site":
        between_runs = sum(len(finding.differences(plant.vectors(), plant.rows)) for plant in group)
    elif before.size and after.size:
        across = (before[:, None] - after[None]).reshape(-1, before.shape[1])
        between_runs = max(between_runs, len(finding.rows_along(across, rows)))
    return between_rounds, between_runs


def bisected(plants: Sequence[Plant], name: str, mode: str) -> int:
    """Rows that a coordinator gets by steep questions along one feature, through the plants' doors."""
    method = get_method(name)
    groups = [list(plants)] if mode == "sum" else [[plant] for plant in plants[:1]]
    found = 0
    for group in groups:
        rows = np.vstack([plant.rows for plant in group])

        def ask(threshold: float, group: list[Plant] = group) -> FloatArray | None:
            plane = np.zeros(group[0].rows.shape[1])
            plane[0], plane[-1] = STEEPNESS, -STEEPNESS * threshold
            message = question(method, plane)
            try:
                told = [
                    plant.answer(method, message, dict(method.parameters), {}, "malice")[0].arrays["slope"]
                    for plant in group
                ]
            except Refusal:
                return None
            return np.asarray(np.sum(told, axis=0)).reshape(-1, plane.size)[0]

        finding.bisection(ask, QUESTIONS)
        seen = stacked([plant.sent[: min(len(each.sent) for each in group)] for plant in group])
        found += len(finding.differences(seen, rows))
    return found


if __name__ == "__main__":
    sys.exit(main())
