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
_MISSING_NUMBERS = ("n/a", "#n/a", "null", "none", "nil", "-", "--", "inf", "+inf", "-inf")
"""Missing too where all other cells of a column are numbers; in a column of words they may be a value."""
_MOST_EMPTY = 0.5
"""A column with a larger share of its cells missing is left out, and not nearly all rows with it."""
_MOST_CLASSES = 10
"""Whole numbers with more different values than that are a target."""
_MOST_WORDS = 20
"""A column of text with more different values is left out; others become one column a value."""
_FEWEST_ROWS = 20
"""Of a class: rarer ones are left out, for four plants cannot each learn and test them."""

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
    header, lines = _read(path)
    if not header or header[-1] != "label":
        raise ValueError(
            f"{path.name}: the last column must be 'label', cells divided by ',', "
            f"it is {header[-1] if header else 'nothing'!r}"
        )
    if not lines:
        raise ValueError(f"{path.name}: no row has all its cells")
    empty = _empty(lines)
    hollow = [j for j in range(len(header) - 1) if header[j] != MACHINE and empty[:, j].mean() > _MOST_EMPTY]
    kept = [j for j in range(len(header)) if j not in hollow]
    missing = empty[:, kept].any(axis=1)
    if missing.all():
        raise ValueError(f"{path.name}: no row has all its cells")
    said = [f"{missing.sum()} rows with a missing cell"] if missing.any() else []
    said += [f"columns that are mostly empty: {', '.join(header[j] for j in hollow)}"] if hollow else []
    columns, names = np.array(lines, dtype=object)[~missing].T[kept], [header[j] for j in kept]
    machines = columns[names.index(MACHINE)].astype(str) if MACHINE in names else None
    parts, dropped = [], []
    for name, cells in zip(names[:-1], columns[:-1], strict=True):
        found = None if name == MACHINE else _numbers(cells)
        if found is None and name != MACHINE:
            dropped.append(name)
        elif found is not None:
            parts.append(found)
    said += [f"columns of text: {', '.join(dropped)}"] if dropped else []
    if not parts:
        raise ValueError(f"{path.name}: no column of numbers beside the label")
    outcomes = _outcomes(columns[-1])
    table = Table(path.stem, np.column_stack(parts), outcomes, machines, tuple(said))
    if table.task == "regression":
        return _learnable(table, path)
    classes, counts = np.unique(outcomes, return_counts=True)
    rare = classes[counts < _FEWEST_ROWS]
    if not rare.size:
        return _learnable(table, path)
    common = table.take(np.flatnonzero(~np.isin(outcomes, rare)))
    return _learnable(_said(common, f"classes of fewer than {_FEWEST_ROWS} rows: {', '.join(rare)}"), path)


def _empty(lines: list[list[str]]) -> NDArray[np.bool_]:
    """Which cells (N, C) are missing: those of :data:`_MISSING`, and of numbers :data:`_MISSING_NUMBERS`.

    The last column is the label, of which "none" is a class.
    """
    said = np.array([[cell.strip().lower() for cell in line] for line in lines], dtype=object)
    found = np.isin(said, _MISSING)
    for j in range(said.shape[1] - 1):
        words = np.isin(said[:, j], _MISSING_NUMBERS)
        if words.any() and all(map(_is_number, said[~words & ~found[:, j], j])):
            found[:, j] |= words
    return found


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and lines that are not blank; ``ValueError`` where the file is no table."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header, lines = next(reader, []), []
            for line in reader:
                if line and len(line) != len(header):
                    raise ValueError(
                        f"{path.name}, line {reader.line_num}: {len(line)} cells, the header has {len(header)}"
                    )
                lines += [line] if line else []
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not UTF-8 text") from None
    except csv.Error as error:
        raise ValueError(f"{path.name} is not a CSV file: {error}") from None
    return header, lines


def _learnable(table: Table, path: Path) -> Table:
    """The table, if its outcomes differ and its machines, where it names them, are enough for every plant's two parts.

    ``ValueError`` where not.
    """
    if len(np.unique(table.outcomes)) < 2:
        what = f"a target that is always {table.outcomes[0]}" if table.task == "regression" else (
            f"fewer than two classes of {_FEWEST_ROWS} rows"
        )
        raise ValueError(f"{path.name}: {what}, so there is nothing to learn")
    if table.machines is not None and (found := len(np.unique(table.machines))) < _FEWEST_MACHINES:
        raise ValueError(f"{path.name}: {found} machines, {_FEWEST_MACHINES} are needed to train and test everywhere")
    return table


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
