"""What is kept of a vector that left: numbers of its coefficients, by which differences of vectors are searched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.basics import FloatArray
from services.site_agent.vault.isolation.chance import NUMBERS
from services.site_agent.vault.isolation.row_directions import OF_COEFFICIENTS

OF_READINGS = 8
"""Numbers of the coefficients whatever the version of the rows: as many as of a version's own."""
_OF_ONE_VERSION = OF_COEFFICIENTS + NUMBERS
SKETCH = _OF_ONE_VERSION + OF_READINGS + 1
"""All that is kept of a vector: of its coefficients, of itself (``isolation.chance``), of its coefficients whatever the
version of the rows (``isolation.other_versions``), and its kind."""
OF_ITSELF = slice(OF_COEFFICIENTS, _OF_ONE_VERSION)
OF_ALL_VERSIONS = slice(_OF_ONE_VERSION, _OF_ONE_VERSION + OF_READINGS)
FAINT = 1e-12
"""Share of the largest sketch in a combination below which a row's part is rounding; sketches of a thousand rows are
good to 1e-14. Two solutions of one local step may differ along a row by more than that, and whoever divides by it has
the row; so it is with vectors that are faint as a whole, which have all their digits."""


def largest(sketches: FloatArray) -> FloatArray:
    """Largest number of the coefficients of each sketch (n, q)."""
    return np.asarray(np.abs(sketches[:, :OF_COEFFICIENTS]).max(axis=1, initial=0.0))


def whole(numbers: Sequence[FloatArray]) -> FloatArray:
    """Sketches (M, q) of what was kept: of earlier agents' vectors fewer numbers, the kind last where there is one."""
    kept = np.zeros((len(numbers), SKETCH))
    for sketch, each in zip(kept, numbers, strict=True):
        known = each.shape[0]
        if _OF_ONE_VERSION < known < SKETCH:
            sketch[-1], known = each[-1], known - 1
        sketch[:known] = each[:known]
    return kept


def told_of_rows(sketches: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of sketches (M, q) what they say whatever the version of the rows, and kinds; less those of earlier agents."""
    numbers = sketches[:, OF_ALL_VERSIONS]
    said = numbers.any(axis=1)
    return numbers[said], sketches[said, -1]
