"""Any table as numbers: features, classes or a target, and the machine of each row where the table has one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from tests.benchmarks.accuracy.cells import (
    FEWEST_ROWS,
    features_of,
    missing_cells,
    otherwise_written,
    outcomes_of,
    read_lines,
)

MACHINE = "unit_number"
"""Column that names the machine of a row; it is no feature."""

_MOST_EMPTY = 0.5
"""A column with a larger share of its cells missing is left out, and not nearly all rows with it."""
LARGEST = 1e150
"""Squares of larger readings overflow: who standardises them cannot learn, or goes on for ever."""

_FEWEST_MACHINES = 8
"""Two for each of four plants: machines stay whole, and each plant learns from some and is tested on others."""


@dataclass(frozen=True)
class Table:
    """``features`` (N, P), ``outcomes`` (N,) classes as text or target values, ``machines`` (N,) or None.

    ``left_out`` says, a line each, what of the file is not in it.
    """

    name: str
    features: FloatArray
    outcomes: NDArray[Any]
    machines: NDArray[Any] | None
    left_out: tuple[str, ...]

    @property
    def task(self) -> str:
        """What the table is for."""
        return "regression" if self.outcomes.dtype.kind == "f" else "classification"

    def take(self, rows: NDArray[np.intp]) -> Table:
        """Some of the rows."""
        machines = None if self.machines is None else self.machines[rows]
        return Table(self.name, self.features[rows], self.outcomes[rows], machines, self.left_out)


def read_table(path: Path) -> Table:
    """A CSV file with a header line, the last column called ``label``.

    Raises
    ------
    ValueError
        It has no such column, no feature, no complete row, or nothing to learn.
    """
    header, lines = read_lines(path)
    if not header or header[-1] != "label":
        raise ValueError(
            f"{path.name}: the last column must be 'label', cells divided by ',', "
            f"it is {header[-1] if header else 'nothing'!r}"
        )
    if not lines:
        raise ValueError(f"{path.name}: no row has all its cells")
    empty = missing_cells(lines)
    hollow = [j for j in range(len(header) - 1) if header[j] != MACHINE and empty[:, j].mean() > _MOST_EMPTY]
    kept = [j for j in range(len(header)) if j not in hollow]
    missing = empty[:, kept].any(axis=1)
    if missing.all():
        raise ValueError(f"{path.name}: no row has all its cells")
    said = [f"{missing.sum()} rows with a missing cell"] if missing.any() else []
    said += [f"columns that are mostly empty: {', '.join(header[j] for j in hollow)}"] if hollow else []
    columns, names = np.array(lines, dtype=object)[~missing].T[kept], [header[j] for j in kept]
    machines = columns[names.index(MACHINE)].astype(str) if MACHINE in names else None
    if number := otherwise_written(columns[-1]):
        raise ValueError(f"{path.name}: a target is numbers with '.' and without '%', one is {number!r}")
    parts, dropped, written, large = [], [], [], []
    for name, cells in zip(names[:-1], columns[:-1], strict=True):
        found = None if name == MACHINE else features_of(cells)
        if found is None and name != MACHINE:
            (written if otherwise_written(cells) else dropped).append(name)
        elif found is not None:
            (parts if np.abs(found).max() <= LARGEST else large).append((name, found))
    said += [f"columns of text: {', '.join(dropped)}"] if dropped else []
    said += [f"columns of numbers that need '.' for ',' and no '%': {', '.join(written)}"] if written else []
    said += [f"columns with readings beyond {LARGEST:g}: {', '.join(name for name, _ in large)}"] if large else []
    if not parts:
        why = f", without {'; '.join(said)}" if said else ""
        raise ValueError(f"{path.name}: no column of numbers beside the label{why}")
    features = np.column_stack([found for _, found in parts])
    return learnable(Table(path.stem, features, outcomes_of(columns[-1]), machines, tuple(said)))


def learnable(table: Table) -> Table:
    """The table without rare classes, if features and outcomes differ and there are machines enough, where it has any.

    ``ValueError`` where not.
    """
    table, file = _without_rare_classes(table), f"{table.name}.csv"
    if len(np.unique(table.outcomes)) < 2:
        what = f"a target that is always {table.outcomes[0]}" if table.task == "regression" else (
            f"fewer than two classes of {FEWEST_ROWS} rows"
        )
        raise ValueError(f"{file}: {what}, so there is nothing to learn")
    if not table.features.std(axis=0).any():
        raise ValueError(f"{file}: no feature differs from row to row, so there is nothing to learn from")
    if table.machines is not None and (found := len(np.unique(table.machines))) < _FEWEST_MACHINES:
        raise ValueError(f"{file}: {found} machines, {_FEWEST_MACHINES} are needed to train and test everywhere")
    return table


def _without_rare_classes(table: Table) -> Table:
    if table.task == "regression":
        return table
    classes, counts = np.unique(table.outcomes, return_counts=True)
    rare = classes[counts < FEWEST_ROWS]
    if not rare.size:
        return table
    common = table.take(np.flatnonzero(~np.isin(table.outcomes, rare)))
    return _said(common, f"classes of fewer than {FEWEST_ROWS} rows: {', '.join(rare)}")


def _said(table: Table, line: str) -> Table:
    return Table(table.name, table.features, table.outcomes, table.machines, (*table.left_out, line))
