"""Any table as numbers: features, classes or a target, and the machine of each row where the table has one."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

MACHINE = "unit_number"
"""Column that names the machine of a row; it is no feature."""

_MISSING = ("", "?", "na", "nan")
_MOST_CLASSES = 10
"""Whole numbers with more different values than that are a target."""
_MOST_WORDS = 20
"""A column of text with more different values is left out; others become one column a value."""
_FEWEST_ROWS = 20
"""Of a class: rarer ones are left out, for four plants cannot each learn and test them."""


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
        It has no such column, or no complete row.
    """
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    if not header or header[-1] != "label":
        raise ValueError(f"{path.name}: the last column must be 'label', it is {header[-1] if header else 'nothing'!r}")
    whole = [line for line in lines if not any(cell.strip().lower() in _MISSING for cell in line)]
    if not whole:
        raise ValueError(f"{path.name}: no row has all its cells")
    said = [f"{len(lines) - len(whole)} rows with a missing cell"] if len(whole) < len(lines) else []
    columns = np.array(whole, dtype=object).T
    machines = columns[header.index(MACHINE)].astype(str) if MACHINE in header else None
    parts, dropped = [], []
    for name, cells in zip(header[:-1], columns[:-1], strict=True):
        found = None if name == MACHINE else _numbers(cells)
        if found is None and name != MACHINE:
            dropped.append(name)
        elif found is not None:
            parts.append(found)
    said += [f"columns of text: {', '.join(dropped)}"] if dropped else []
    outcomes = _outcomes(columns[-1])
    table = Table(path.stem, np.column_stack(parts), outcomes, machines, tuple(said))
    if table.task == "regression":
        return table
    names, counts = np.unique(outcomes, return_counts=True)
    rare = names[counts < _FEWEST_ROWS]
    if not rare.size:
        return table
    kept = table.take(np.flatnonzero(~np.isin(outcomes, rare)))
    return _said(kept, f"classes of fewer than {_FEWEST_ROWS} rows: {', '.join(rare)}")


def _said(table: Table, line: str) -> Table:
    return Table(table.name, table.features, table.outcomes, table.machines, (*table.left_out, line))


def _numbers(cells: NDArray[Any]) -> FloatArray | None:
    """A column (N, 1), or one column a value of text (N, V); None where there are too many values."""
    try:
        found = np.array([float(cell) for cell in cells])
        return found[:, None] if np.isfinite(found).all() else None
    except ValueError:
        values = sorted(set(cells))
        if len(values) > _MOST_WORDS:
            return None
        return np.stack([cells == value for value in values], axis=1).astype(np.float64)


def _outcomes(cells: NDArray[Any]) -> NDArray[Any]:
    """Text or few whole numbers are classes, else the values of a target."""
    try:
        values = np.array([float(cell) for cell in cells])
    except ValueError:
        return cells.astype(str)
    few = np.unique(values).size <= _MOST_CLASSES
    whole = all(math.isfinite(value) and value == int(value) for value in values)
    return cells.astype(str) if few and whole else values
