"""A week's retraining: ``python -m tests.benchmarks.weekly [--json FILE] [--draws 10] [--table NAME]``.

Twenty plants, of which three have a quarter more rows a week later. Rounds to a certified gap of 1e-3 from nothing and
from where the week before ended (the cuts of the unchanged plants, or cohorts, and the best point), where each plant is
seen and on sums over cohorts of three or four. ``risk_apart``: by how much the worst-case risks of the two models
differ, trained to 1e-8, as a share of the risk. ``unlearn_rounds``: rounds after one plant left.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import json  # noqa: E402
from collections.abc import Mapping, Sequence  # noqa: E402
from statistics import median  # noqa: E402

import numpy as np  # noqa: E402

from models.cohorts.dealing import Cohorts, deal  # noqa: E402
from models.cohorts.regrouping import regroup  # noqa: E402
from models.problem import RobustSpec, SiteProblem  # noqa: E402
from models.simulation.federation import Training, train  # noqa: E402
from models.worst_case.risk import site_risk  # noqa: E402
from tests.benchmarks.command import at_least, in_words, output_file  # noqa: E402
from tests.benchmarks.data import load_binary  # noqa: E402

PLANTS, CHANGED, COHORT, GAP, TIGHT, MOST_ROUNDS = 20, 3, 3, 1e-3, 1e-8, 6
TABLES = {
    "breast_cancer_wisconsin_diagnostic": "M", "banknote_authentication": "1", "rice_cammeo_osmancik": "Cammeo",
}
MODES = {"each site": "level-bundle", "sums": "cohort-bundle"}
Plants = Mapping[str, SiteProblem]


def two_weeks(seed: int, table: str) -> tuple[dict[str, SiteProblem], dict[str, SiteProblem], list[str]]:
    """Plants of the first week and of the second, and who changed: unlike plants, cut by the first feature."""
    features, labels = load_binary(table, (TABLES[table],))
    random = np.random.default_rng(seed)
    low, high = features.min(axis=0), features.max(axis=0)
    features = 2.0 * (features - low) / (high - low) - 1.0
    order = np.argsort(features[:, 0] + random.normal(0.0, 0.3, labels.size), kind="stable")
    names = [f"plant-{g:02d}" for g in range(PLANTS)]
    changed = sorted(str(name) for name in random.choice(names, CHANGED, replace=False))

    def plant(rows: np.ndarray) -> SiteProblem:
        return SiteProblem(features[rows], labels[rows], RobustSpec(1.0 / (10 * rows.size), 1.0, "l2"))

    before, after = {}, {}
    for name, part in zip(names, np.array_split(order, PLANTS), strict=True):
        rows = random.permutation(part)
        before[name] = plant(rows[: int(0.8 * rows.size)])
        after[name] = plant(rows) if name in changed else before[name]
    return before, after, changed


def risk_of(trained: Training, plants: Plants) -> float:
    """Mean worst-case risk of the weights, anew from the rows."""
    return float(np.mean([site_risk(trained.weights, plant).value for plant in plants.values()]))


def drawn(seed: int, table: str, reveal: str, *, tight: bool) -> dict[str, object]:
    """One draw: rounds from nothing, after a week, and after a plant left; how far the risks are apart."""
    before, after, changed = two_weeks(seed, table)
    method, sums = MODES[reveal], reveal == "sums"
    cohorts: Cohorts | None = deal(list(before), COHORT, seed) if sums else None
    now: Cohorts | None = None if cohorts is None else regroup(cohorts, list(after), changed, COHORT, seed + 1)
    week = train(before, method=method, gap=GAP, cohorts=cohorts)
    same = set(after) - set(changed)
    zero = train(after, method=method, gap=GAP, cohorts=now)
    warm = train(after, method=method, gap=GAP, cohorts=now, after=week.end, unchanged=same)
    gone = "plant-07"
    stay = {name: plant for name, plant in before.items() if name != gone}
    left: Cohorts | None = None if cohorts is None else regroup(cohorts, list(stay), (), COHORT, seed + 1)
    fewer = train(stay, method=method, gap=GAP, cohorts=left, after=week.end, unchanged=set(stay))
    row: dict[str, object] = {
        "table": table, "reveal": reveal, "seed": seed, "rounds_from_zero": zero.n_rounds, "rounds": warm.n_rounds,
        "unlearn_rounds": fewer.n_rounds, "gap": warm.certificate.gap,
    }
    if tight:
        ends = [
            train(after, method=method, gap=TIGHT, cohorts=now, after=week.end if k else None, unchanged=same)
            for k in range(2)
        ]
        risks = [risk_of(each, after) for each in ends]
        row["risk_apart"] = abs(risks[0] - risks[1]) / max(risks)
    return row


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each table and mode; write the rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    parser.add_argument("--draws", type=at_least(), default=10, help="draws of plants and changes (default 10)")
    parser.add_argument("--table", choices=sorted(TABLES), help="default: all")
    parser.add_argument("--loose", action="store_true", help="leave out the training to a gap of 1e-8")
    options = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    for table in [options.table] if options.table else TABLES:
        for reveal in MODES:
            found = [drawn(seed, table, reveal, tight=not options.loose) for seed in range(options.draws)]
            rows += found
            middle = {
                name: median(float(str(row[name])) for row in found)
                for name in ("rounds_from_zero", "rounds", "unlearn_rounds")
            }
            apart = max((float(str(row["risk_apart"])) for row in found if "risk_apart" in row), default=float("nan"))
            told = "met" if middle["rounds"] <= MOST_ROUNDS and not apart > 1e-6 else "MISSED"
            print(
                f"{table}, {reveal}: {middle['rounds_from_zero']:g} rounds from nothing, {middle['rounds']:g} after a "
                f"week ({MOST_ROUNDS} wanted), {middle['unlearn_rounds']:g} after a plant left; "
                f"risks apart by {apart:.1e} at most: {told}", flush=True,
            )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(in_words(main))
