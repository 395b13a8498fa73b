"""Arguments that all commands of this folder take, and what they all write."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # cells run side by side; spawned processes inherit this

from tests.benchmarks.command import at_least  # noqa: E402 - it loads numpy, which reads them once


def parser(description: str | None, name: str, *, jobs: bool = True, quick: bool = True) -> argparse.ArgumentParser:
    """Parser with ``--quick``, ``--json``, ``--out`` and ``--jobs``; what takes seconds leaves out the last or both."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if quick:
        found.add_argument("--quick", action="store_true", help="a few repetitions, in minutes")
    found.add_argument("--json", type=Path, metavar="FILE", help="write the rows of the table as JSON, too")
    found.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("benchmark-results") / "fdr_svm" / name,
        help="folder of the CSV (the state of the run), the plot and the table (default %(default)s)",
    )
    if jobs:
        found.add_argument("--jobs", type=at_least(), metavar="N", help="processes (default: all cores)")
    return found


def figure_parser(description: str | None, name: str) -> argparse.ArgumentParser:
    """The same for a figure, with ``--repetitions``."""
    found = parser(description, name)
    found.add_argument(
        "--repetitions", type=at_least(), metavar="N", default=50, help="of a full run (the paper's: %(default)s)"
    )
    return found


def repetitions(args: argparse.Namespace) -> range:
    """Numbers of the repetitions of a figure."""
    return range(1 if args.quick else args.repetitions)


def state_file(args: argparse.Namespace) -> Path:
    """CSV of the finished cells: quick and full runs are kept apart."""
    return Path(args.out) / ("cells-quick.csv" if args.quick else "cells.csv")


def write_json(path: Path | None, rows: Sequence[dict[str, Any]]) -> None:
    """Rows as JSON; what is not a finite number becomes null."""
    if path is not None:
        clean = [{name: _clean(value) for name, value in row.items()} for row in rows]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(clean, indent=1) + "\n", encoding="utf-8")


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Rows as CSV."""
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _clean(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
