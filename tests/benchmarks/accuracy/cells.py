"""The cells of a CSV file: which are missing, and what a column of features or the label is as numbers or classes."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

FEWEST_ROWS = 20
"""Of a class: rarer ones are left out, for four plants cannot each learn and test them."""

_MISSING = ("", "?", "na", "nan")
_MISSING_NUMBERS = (
    "n/a", "#n/a", "null", "none", "nil", "-", "--", "#div/0!", "#value!", "#num!", "#ref!", "#name?", "#null!",
)
"""Missing too, as infinities are, where all other cells of a column are numbers; among words they may be a value."""
_MOST_CLASSES = 10
"""Whole numbers with more different values than that are a target."""
_OTHERWISE_WRITTEN = re.compile(r"[-+]?\d+([.,]\d+)?\s*%?")
_MOST_WORDS = 20
"""A column of text with more different values is left out; others become one column a value."""


def read_lines(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and lines that are not blank, without blanks around cells; ``ValueError`` where the file is no table."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header, lines = [name.strip() for name in next(reader, [])], []
            if len(header) == 1 and ";" in header[0]:
                raise ValueError(f"{path.name}: decimals must have '.', cells divided by ',', it is {header[0]!r}")
            for line in reader:
                if line and len(line) != len(header):
                    raise ValueError(
                        f"{path.name}, line {reader.line_num}: {len(line)} cells, the header has {len(header)}"
                    )
                lines += [[cell.strip() for cell in line]] if line else []
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not UTF-8 text") from None
    except csv.Error as error:
        raise ValueError(f"{path.name} is not a CSV file: {error}") from None
    return header, lines


def missing_cells(lines: list[list[str]]) -> NDArray[np.bool_]:
    """Which cells (N, C) are missing: :data:`_MISSING`, and among numbers :data:`_MISSING_NUMBERS` and infinities.

    The last column is the label, of which "none" may be a class: there the latter are missing where the numbers are a
    target, or where each of these words is rarer than a class may be.
    """
    said = np.array([[cell.lower() for cell in line] for line in lines], dtype=object)
    found = np.isin(said, _MISSING)
    for j in range(said.shape[1]):
        words = np.array([_is_missing_number(cell) for cell in said[:, j]])
        others = said[~words & ~found[:, j], j]
        if not words.any() or not all(map(_is_number, others)):
            continue
        is_label = j == said.shape[1] - 1
        if not is_label or others.size and (_is_target(others) or _all_rare(said[words, j])):
            found[:, j] |= words
    return found


def features_of(cells: NDArray[Any]) -> FloatArray | None:
    """A column (N, 1), or one column a value of text (N, V); None where there are too many values."""
    if all(map(_is_number, cells)):
        return cells.astype(np.float64)[:, None]
    values = sorted(set(cells))
    if len(values) > _MOST_WORDS:
        return None
    return np.stack([cells == value for value in values], axis=1).astype(np.float64)


def otherwise_written(cells: NDArray[Any]) -> str:
    """A number with a decimal comma or a % of a column that has more of numbers than classes may be; else empty."""
    said = sorted({cell.strip() for cell in cells if not _is_missing_number(cell.strip().lower())})
    if len(said) <= _MOST_CLASSES or not all(map(_OTHERWISE_WRITTEN.fullmatch, said)):
        return ""
    return next((cell for cell in said if not _is_number(cell)), "")


def outcomes_of(cells: NDArray[Any]) -> NDArray[Any]:
    """Text or few whole numbers are classes, else the values of a target; a class of numbers is named by its value."""
    if all(map(_is_number, cells)) and _is_target(cells):
        return cells.astype(np.float64)
    if not all(_is_number(cell) or _is_missing_number(cell.strip().lower()) for cell in cells):
        return cells.astype(str)
    return np.array([f"{float(cell) + 0.0:.15g}" if _is_number(cell) else cell for cell in cells])


def _is_target(cells: NDArray[Any]) -> bool:
    values = cells.astype(np.float64)
    return np.unique(values).size > _MOST_CLASSES or bool((values != np.floor(values)).any())


def _all_rare(words: NDArray[Any]) -> bool:
    return max(list(words).count(word) for word in set(words)) < FEWEST_ROWS


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _is_missing_number(cell: str) -> bool:
    """Whether a cell, in lower case, stands for a number that is not there: a word for it, or no finite number."""
    try:
        return not math.isfinite(float(cell))
    except ValueError:
        return cell in _MISSING_NUMBERS
