"""Public tables for the benchmarks: read from the folder that ``BALLAST_DATA_DIR`` names.

Default: ``../shared/datasets`` beside the project, where that is there. Format of a file: CSV with a header line, the
target last and called ``label``, an empty cell for a missing value. ``python -m tests.benchmarks.fetch`` gets the files
from their original sources.
"""

from __future__ import annotations

import csv
import os
import shlex
from pathlib import Path

import numpy as np

from models.basics import FloatArray

ROOT = Path(__file__).resolve().parents[2]


class MissingDataError(FileNotFoundError):
    """A table is not there; the text says how to get it."""


def data_folder() -> Path:
    """Folder of the tables, whether or not it is there."""
    named = os.environ.get("BALLAST_DATA_DIR")
    return Path(named) if named else ROOT.parent / "shared" / "datasets"


def table_path(name: str) -> Path:
    """Path of the table ``name``.

    Raises
    ------
    MissingDataError
        It is not there.
    """
    path = data_folder() / f"{name}.csv"
    if not path.is_file():
        raise MissingDataError(
            f"there is no {path}; set BALLAST_DATA_DIR to the folder of the tables, "
            f"or get it with: python -m tests.benchmarks.fetch {name} --out {shlex.quote(str(path.parent))}"
        )
    return path


def load_table(name: str) -> tuple[FloatArray, list[str]]:
    """Numeric features (N, P), NaN where a cell is empty, and the label of each row as text."""
    with table_path(name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    features = np.array([[float(cell) if cell else np.nan for cell in row[:-1]] for row in rows])
    return features, [row[-1] for row in rows]


def load_binary(name: str, positive: tuple[str, ...]) -> tuple[FloatArray, FloatArray]:
    """Complete rows only: features (N, P) and labels of +1 (a class of ``positive``) and -1."""
    features, labels = load_table(name)
    unknown = set(positive) - set(labels)
    if unknown:
        raise ValueError(f"the table {name} has no class {sorted(unknown)[0]!r}")
    signs = np.array([1.0 if label in positive else -1.0 for label in labels])
    complete = ~np.isnan(features).any(axis=1)
    return features[complete], signs[complete]
