"""Words that all of the mathematics shares: arrays, transport norms, and the error of a problem without meaning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Arrays = Mapping[str, FloatArray]
TransportNorm = Literal["l1", "l2", "linf"]


class ProblemError(ValueError):
    """The problem as stated has no meaning; the text says what was wrong and what would be right."""


_NEEDLESS, _COARSEST = 1e-4, 1e-6
"""Digits of a point, relative to the point, that are dropped: this share of the wanted gap, and what at most."""


def rounded(values: FloatArray, share: float) -> FloatArray:
    """Values to the nearest multiple of a power of two, the greatest at or below ``share`` of the largest of them."""
    size = float(np.abs(values).max(initial=0.0))
    if not (size > 0 and share > 0 and math.isfinite(size)):
        return values
    unit = 2.0 ** math.floor(math.log2(size) + math.log2(share))
    if unit == 0:  # the largest is next to the least number that there is
        return values
    found = np.asarray(values / unit)
    np.round(found, out=found)
    found *= unit
    return found


def stack_arrays(parts: Sequence[Arrays]) -> dict[str, FloatArray]:
    """Arrays of the same names and shapes under one leading axis."""
    return {name: np.stack([np.asarray(part[name], dtype=np.float64) for part in parts]) for name in parts[0]}


def without_needless_digits(point: FloatArray, gap: float) -> FloatArray:
    """The point without the digits that a wanted relative gap has no use for, relative to its largest.

    A cut may be made at any point, so no bound is touched; but what rounding did at one point cannot grow at the next,
    and the same data in other units, which differ in their last digits, lead to the same points.
    """
    return rounded(point, min(_NEEDLESS * gap, _COARSEST))
