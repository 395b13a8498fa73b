"""A table of measurements, from whose columns an asset type is drafted: its cells, and which of them are numbers."""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.basics import FloatArray
from services.contracts.delimiters import other_delimiter
from services.contracts.errors import InvalidInputError

_MISSING = ("", "?", "na", "nan", "null")
_LEAST_COUNT = 10
"""Rows from which on readings that only grow are more likely a time or a counter than a sensor's."""


@dataclass(frozen=True)
class Layout:
    """How the table is written, and which of its columns are no sensors.

    ``label`` holds the fault classes' words, ``target`` a number to be estimated (None: there is none), ``without``
    columns that are neither, such as times and machines.
    """

    delimiter: str = ","
    decimal: str = "."
    label: str | None = "label"
    target: str | None = None
    without: tuple[str, ...] = ()


def read_table(path: Path, layout: Layout) -> dict[str, list[str]]:
    """Cells of each column by its header; of columns without one, the last, by "".

    ``InvalidInputError`` where the file is no table with a header and rows.
    """
    if len(layout.delimiter) != 1 or layout.delimiter == layout.decimal:
        raise InvalidInputError(
            f"the delimiter must be one character other than the decimal mark, it is {layout.delimiter!r}"
        )
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=layout.delimiter, strict=True)
            header = [cell.strip() for cell in next(reader, [])]
            rows = [[cell.strip() for cell in row] for row in reader if row]
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"{path.name} is not UTF-8 text; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise InvalidInputError(f"{path.name} is not a CSV file: {error}") from None
    if not header or not rows:
        raise InvalidInputError(f"{path.name} needs a header line and rows")
    other = other_delimiter(header, layout.delimiter)
    if other is not None and header[0] not in (layout.label, layout.target):  # a name that was said is one
        raise InvalidInputError(
            f"{path.name}: cells are divided by {other!r}, not by {layout.delimiter!r}: say so by --delimiter "
            + (f"'{other}'" if other.isprintable() else f"${other!r}")  # as a shell takes it
        )
    twice = [name for name, count in Counter(header).items() if name and count > 1]
    if twice:
        raise InvalidInputError(f"{path.name} has two columns called {twice[0]!r}")
    uneven = next((number for number, row in enumerate(rows) if len(row) != len(header)), None)
    if uneven is not None:
        raise InvalidInputError(
            f"{path.name}, row {uneven + 1}: {len(rows[uneven])} cells, the header has {len(header)}; are cells "
            f"divided by {layout.delimiter!r}? Else say --delimiter"
        )
    return {name: [row[position] for row in rows] for position, name in enumerate(header)}


def numbers(cells: list[str], decimal: str) -> FloatArray | None:
    """The cells as numbers, NaN where one is empty; None where one is neither, or all are empty."""
    try:
        found = np.array([math.nan if cell.lower() in _MISSING else _number(cell, decimal) for cell in cells])
    except ValueError:
        return None
    return found if np.isfinite(found).any() else None


def first_text(cells: list[str], decimal: str) -> int | None:
    """Row from 0 of the first cell that is neither empty nor a number; None where there is none."""
    for row, cell in enumerate(cells):
        if cell.lower() not in _MISSING:
            try:
                _number(cell, decimal)
            except ValueError:
                return row
    return None


def likely_no_sensor(cells: list[str], readings: FloatArray) -> str:
    """Why a column of numbers is likely not read from a sensor, empty where nothing speaks for that."""
    name = next((cell for cell in cells if cell[:1] == "0" and cell.isdigit() and len(cell) > 1), None)
    if name is not None:
        return f"{name[:20]!r} looks like the name of a machine or the code of a state"
    if len(readings) >= _LEAST_COUNT and bool((readings[1:] > readings[:-1]).all()):
        return "it grows from each row to the next, as a time or a counter does"
    return ""


def _number(cell: str, decimal: str) -> float:
    """The number in a cell, as a plant reads it: no point beside a decimal comma, and no underscores."""
    if "_" in cell or (decimal != "." and "." in cell):
        raise ValueError(cell)
    return float(cell.replace(decimal, "."))
