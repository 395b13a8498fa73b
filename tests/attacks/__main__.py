"""``python -m tests.attacks --json FILE [--data FOLDER] [--methods NAME ...] [--sites N]``: attacks on public tables.

Every CSV file of the folder that has numeric features and the last column ``label`` is trained on with each method, and
every attack is made on what was sent. A line of the result: ``table, method, mode, attack, rows, rows_found``; mode is
``per-site`` for single plants' answers and ``sum`` for the sums of all plants' answers to a question. In per-site mode
``exposure`` is what the plants' own figures said.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from services.site_agent.vault.exposure import SKETCH, Differences, Span, leveraged_rows
from tests.attacks import finding
from tests.attacks.traffic import Sent, read_table, record

STEEPNESS = 1e4
MOST_ROWS = 4000  # of a table: the rest is left out, so that a run takes seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where an attack found more than the plants said."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BALLAST_DATA_DIR", "../shared/datasets")))
    parser.add_argument("--methods", nargs="+", default=["level-bundle", "fdr-sm", "fdr-admm"])
    parser.add_argument("--sites", type=int, default=4)
    parser.add_argument("--tables", nargs="+", help="names of tables, without .csv (default: all that fit)")
    chosen = parser.parse_args(arguments)
    lines: list[dict[str, Any]] = []
    for path in sorted(chosen.data.glob("*.csv")):
        if chosen.tables and path.stem not in chosen.tables:
            continue
        try:
            features, labels = read_table(path)
        except ValueError as error:
            print(f"left out {path.stem}: {error}", file=sys.stderr)
            continue
        for method in chosen.methods:
            sent = record(features[:MOST_ROWS], labels[:MOST_ROWS], method, chosen.sites)
            lines += [{"table": path.stem, "method": method, **line} for line in attack(sent)]
            for line in lines[-len(ATTACKS) :]:
                print(" ".join(f"{value}" for value in line.values()), flush=True)
    chosen.json.write_text(json.dumps(lines, indent=1) + "\n")
    return int(any(line["rows_found"] > line.get("exposure", line["rows"]) for line in lines))


ATTACKS = ("pairwise", "differences", "span", "bisection", "sum pairwise", "sum drop-one")


def attack(sent: dict[str, Sent]) -> list[dict[str, Any]]:
    """Every attack on the traffic of one run."""
    sites = list(sent.values())
    total = sum(len(each.rows) for each in sites)
    said = [exposure(each) for each in sites]
    single = {
        "pairwise": sum(len(finding.pairwise(each.all_vectors(), each.rows)) for each in sites),
        "differences": sum(len(finding.differences(each.all_vectors(), each.rows)) for each in sites),
        "span": sum(len(finding.span(*spanned(each), each.rows)) for each in sites),
        "bisection": sum(len(finding.bisection(each.problem, each.rows, STEEPNESS)) for each in sites),
    }
    lines = [{"mode": "per-site", "attack": name, "rows": total, "rows_found": count} for name, count in single.items()]
    for number, line in enumerate(lines[:3]):
        line["exposure"] = sum(figures[number] for figures in said)
    slopes = np.array([each.vectors["slope"] for each in sites])
    summed, rows = slopes.sum(axis=0), np.vstack([each.rows for each in sites])
    dropped = sum(
        len(finding.dropped(summed, summed - own, each.rows)) for own, each in zip(slopes, sites, strict=True)
    )
    for name, count in (("pairwise", len(finding.pairwise(summed, rows))), ("drop-one", dropped)):
        lines.append({"mode": "sum", "attack": name, "rows": total, "rows_found": count})
    return lines


def spanned(site: Sent) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (M, D) that the site accounts for, and their coefficients (M, N): the vectors are what these give."""
    coefficients = np.array([rows for account in site.accounts for rows in account.rows])
    return coefficients @ site.rows, coefficients


def exposure(site: Sent) -> tuple[int, int, int]:
    """What the plant says of its answers: rows by pairs, by differences, and of leverage .999."""
    count = len(site.rows)
    differences = Differences(count, 1, np.zeros((0, SKETCH)), set(), set())
    span = Span(count, np.zeros((0, count)), count)
    for account in site.accounts:
        for rows in account.rows:
            sketch = differences.sketch(rows)
            if not differences.knows(sketch):
                differences.add(sketch)
                span.add(rows)
    return len(differences.pairs), len(differences.differences), int(leveraged_rows(span.leverage).sum())


if __name__ == "__main__":
    sys.exit(main())
