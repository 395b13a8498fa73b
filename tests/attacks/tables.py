"""A public table as features in [0, 1] and labels of -1 and 1."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path

import numpy as np

from models.basics import FloatArray

_MISSING = ("", "?", "na", "nan")


def read_table(path: Path) -> tuple[FloatArray, FloatArray, int]:
    """Features (N, P), labels (N,): the most frequent class against the rest, and rows left out for a missing cell.

    Raises
    ------
    ValueError
        The table has no last column ``label``, a cell that is no number, or too few rows of one of the classes.
    """
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    if header[-1] != "label":
        raise ValueError(f"the last column must be 'label', it is {header[-1]!r}")
    whole = [line for line in lines if not any(cell.strip().lower() in _MISSING for cell in line)]
    features = np.array([[float(cell) for cell in line[:-1]] for line in whole]).reshape(len(whole), len(header) - 1)
    if not whole or not all(math.isfinite(value) for value in features.ravel()):
        raise ValueError("no row of it has all its cells")
    counts = Counter(line[-1] for line in whole).most_common()
    if len(counts) < 2:
        raise ValueError("it has one class only")
    low, span = features.min(axis=0), np.ptp(features, axis=0)
    labels = np.where(np.array([line[-1] for line in whole]) == counts[0][0], 1.0, -1.0)
    return (features - low) / np.where(span > 0, span, 1.0), labels, len(lines) - len(whole)
