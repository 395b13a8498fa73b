"""``python -m tests.benchmarks.accuracy --json FILE``: Ballast beside what a user would pick, on public tables.

Each table is dealt to four unlike plants (``deal``), 30 % of each plant's rows are the test. Rows:
``table, task, learner, metric, score, worst_plant, seconds, rounds, bytes_per_site, coverage, width, tuning_rounds,
tuning_bytes, scores``, means over ``--seeds`` deals but for ``scores``, which has that of each deal; ``score`` is over
the test rows of all plants, ``worst_plant`` the worst of the plants' own.
``--data FOLDER`` takes any folder of tables: CSV with a header, numeric features, the last column ``label`` (text or
few whole numbers are classes, else a target); a column ``unit_number`` names the machine: machines stay whole. Tables
of more than ``--rows`` rows are cut to as many, drawn at random. ``--jobs`` learners and deals are at work at a time,
as many as there are processors; ``seconds`` are those of one. The file has a row as soon as it is known. What cannot be
read, dealt or learnt is a line on stderr that says why, and the others go on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.accuracy.deal import PLANTS, Part, deal
from tests.benchmarks.accuracy.learners import LEARNERS, score
from tests.benchmarks.accuracy.outcome import Outcome
from tests.benchmarks.accuracy.processes import outcomes, reason, workers
from tests.benchmarks.accuracy.tables import Table, learnable, read_table
from tests.benchmarks.command import at_least, output_file
from tests.benchmarks.data import data_folder

METRICS = {"classification": "macro F-1", "regression": "mean absolute error"}
LEFT_OUT = ("ai4i2020_modes", "adult")
"""Of the folder that comes with no ``--data``: modes of a few rows each, and a table that is nearly all text."""


def rows_of(
    table: Table, learners: Sequence[str], seeds: int, pool: Executor | None
) -> Iterator[dict[str, Any]]:
    """A row for each learner, printed as it comes; for one that cannot learn the table a line that says why.

    A table that cannot be dealt is a line, and no rows.
    """
    try:
        deals = [deal(table, seed) for seed in range(seeds)]
    except ValueError as error:
        _leave_out(table.name, reason(error))
        return
    for name, found in outcomes(learners, deals, pool):
        if isinstance(found, str):
            _leave_out(f"{table.name}, {name}", found)
            continue
        try:
            row = _row(table, name, found, [test for _, test in deals])
        except Exception as error:  # answers that no score is defined of
            _leave_out(f"{table.name}, {name}", reason(error))
            continue
        print(_line(row), flush=True)
        yield row


def _leave_out(what: str, why: str) -> None:
    """Say on stderr what is left out and why, in one line."""
    print(f"left out: {what}: {why}", file=sys.stderr, flush=True)


def _row(table: Table, learner: str, found: Sequence[Outcome], tests: Sequence[Part]) -> dict[str, Any]:
    scores = [score(table.task, test.outcomes, each.predicted) for each, test in zip(found, tests, strict=True)]
    worst = [_worst(table.task, each, test) for each, test in zip(found, tests, strict=True)]
    means = {
        name: None if any(getattr(each, name) is None for each in found) else float(
            np.mean([getattr(each, name) for each in found])
        )
        for name in (
            "seconds", "rounds", "bytes_per_site", "coverage", "width", "tuning_rounds", "tuning_bytes",
        )
    }
    return {
        "table": table.name, "task": table.task, "learner": learner, "metric": METRICS[table.task],
        "score": float(np.mean(scores)), "worst_plant": float(np.mean(worst)), **means,
        "scores": [float(each) for each in scores],
    }


def _worst(task: str, outcome: Outcome, test: Part) -> float:
    own = [
        score(task, test.outcomes[rows], outcome.predicted[rows])
        for plant in range(PLANTS) if (rows := test.plants == plant).any()
    ]
    return max(own) if task == "regression" else min(own)


def _line(row: dict[str, Any]) -> str:
    parts = [f"{row['table']:<40}{row['learner']:<20}{_short(row['score'])}  worst {_short(row['worst_plant'])}"]
    parts.append(f"{row['seconds']:7.1f} s")
    if row["rounds"] is not None:
        parts.append(f"{row['rounds']:5.0f} rounds {row['bytes_per_site'] / 1000:7.1f} kB")
    if row["tuning_rounds"] is not None:
        parts.append(f"of which tuning {row['tuning_rounds']:5.0f} rounds {row['tuning_bytes'] / 1000:7.1f} kB")
    if row["coverage"] is not None:
        parts.append(f"coverage {row['coverage']:.3f} width {row['width']:.3g}")
    return "  ".join(parts)


def _short(value: float) -> str:
    """Four decimals where these tell it, else six digits."""
    return f"{value:8.4f}" if value == 0 or 1e-2 <= abs(value) < 1e6 else f"{value:8.6g}"


def _tables(folder: Path, named: Sequence[str] | None) -> list[Path]:
    """The tables of a folder by name, all without names; a line for each name that is none of them."""
    paths = {path.stem: path for path in sorted(folder.glob("*.csv"))}
    for name in named or ():
        if name not in paths:
            _leave_out(name, f"there is no {folder / name}.csv; tables there are {', '.join(paths) or 'none'}")
    return [path for name, path in paths.items() if named is None or name in named]


def _whole(path: Path, most: int) -> Table:
    """A table of at most so many rows; ``ValueError`` where nothing can be learnt of it, or of the rows drawn."""
    table = read_table(path)
    for line in table.left_out:
        print(f"{table.name}: without {line}")
    if len(table.outcomes) <= most:
        return table
    kept = np.sort(np.random.default_rng(0).permutation(len(table.outcomes))[:most])
    print(f"{table.name}: {most} of {len(table.outcomes)} rows, drawn at random")
    drawn = learnable(table.take(kept))
    for line in drawn.left_out[len(table.left_out):]:
        print(f"{table.name}: without {line}")
    return drawn


def _rows(paths: Sequence[Path], chosen: argparse.Namespace, pool: Executor | None) -> Iterator[dict[str, Any]]:
    """The rows of all tables, as they come; a line for a table of which nothing can be learnt."""
    for path in paths:
        try:
            table = _whole(path, chosen.rows)
        except ValueError as error:
            print(f"left out: {error}", file=sys.stderr, flush=True)
            continue
        yield from rows_of(table, chosen.learners, chosen.seeds, pool)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 2 where no table can be read, 1 where it cannot go on."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.accuracy", description=__doc__)
    parser.add_argument("--json", type=output_file)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--seeds", type=at_least(), default=3)
    parser.add_argument("--rows", type=at_least(), default=4200)
    parser.add_argument("--jobs", type=at_least(), default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    folder = chosen.data or data_folder()
    if not folder.is_dir():
        print(f"there is no folder {folder}", file=sys.stderr)
        return 2
    paths = _tables(folder, chosen.tables)
    if not chosen.tables and chosen.data is None:
        paths = [path for path in paths if path.stem not in LEFT_OUT]
    found: list[dict[str, Any]] = []
    try:
        with workers(min(chosen.jobs, len(chosen.learners) * chosen.seeds)) as pool:
            for row in _rows(paths, chosen, pool):
                found.append(row)
                if chosen.json is not None:
                    chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    except BrokenExecutor:
        print("a learner's process was killed, perhaps for want of memory: --jobs 1 takes least", file=sys.stderr)
        return 1
    if not found:
        why = "see the lines above" if paths or chosen.tables else "CSV files whose last column is 'label' are needed"
        print(f"no table in {folder} was learnt: {why}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
