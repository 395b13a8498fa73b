"""Runs the cells of an experiment over processes; the CSV of finished cells is the state, so a run resumes."""

from __future__ import annotations

import csv
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A cell to run: the key of its row, and what makes the rest of the row. Picklable."""

    key: tuple[tuple[str, str], ...]
    run: Callable[..., Any]
    arguments: tuple[Any, ...]


def run_cells(jobs: Iterable[Job], state: Path, processes: int | None) -> list[Row]:
    """Run the jobs that the state file does not have yet, one line of progress each; return all their rows."""
    wanted = {job.key: job for job in jobs}
    done = read_rows(state)
    names = next(iter(wanted))
    missing = [name for name, _ in names if done and name not in done[0]]
    if missing:
        raise ValueError(f"{state} is of an older run, without the column {missing[0]}; move it away or give --out")
    known = {tuple((name, row[name]) for name, _ in names) for row in done}
    todo = [job for key, job in wanted.items() if key not in known]
    state.parent.mkdir(parents=True, exist_ok=True)
    count = min(processes or os.cpu_count() or 1, max(len(todo), 1))
    print(f"{len(wanted) - len(todo)} of {len(wanted)} cells are in {state}; {len(todo)} to go, {count} at a time")
    began = time.monotonic()
    if count == 1:
        results = map(_run, todo)
        _collect(results, len(todo), state, began)
    elif todo:
        with multiprocessing.get_context("spawn").Pool(count) as pool:
            _collect(pool.imap_unordered(_run, todo), len(todo), state, began)
    return [row for row in read_rows(state) if tuple((name, row[name]) for name, _ in names) in wanted]


def _collect(results: Iterable[Row], total: int, state: Path, began: float) -> None:
    for number, row in enumerate(results, start=1):
        append_row(state, row)
        print(f"[{number}/{total}] {time.monotonic() - began:.0f} s  {', '.join(map(str, list(row.values())[:5]))}",
              flush=True)


def _run(job: Job) -> Row:
    return dict(job.key) | asdict(job.run(*job.arguments))


def read_rows(state: Path) -> list[Row]:
    """Rows of a state file, none where there is none; numbers as floats."""
    if not state.is_file():
        return []
    with state.open(newline="", encoding="utf-8") as file:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def append_row(state: Path, row: Row) -> None:
    """Append a row, with the header where the file is new."""
    new = not state.is_file()
    with state.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)


def _value(text: str) -> Any:
    if text.isdigit():
        return text
    try:
        return float(text)
    except ValueError:
        return text
