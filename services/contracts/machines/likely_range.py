"""The range that a sensor's readings speak for, without the readings that are likely mistakes."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray

FENCE = 5.0
"""A reading this many middle widths beyond the middle is taken for a mistake."""

_MIDDLE = (0.05, 0.95)


def likely_range(readings: FloatArray, fence: float = FENCE) -> tuple[float, float]:
    """Least and largest of readings (N,), N > 0, without those that are far from nearly all others; NaN is none.

    With q the quantiles .05 and .95 and w = q_.95 - q_.05 those in [q_.05 - f w, q_.95 + f w] count, f the ``fence``.
    All count where w is 0: a sensor that seldom moves. A mistyped value in a range squeezes all others into a part of
    it, in which neither the segments of a spline nor the unit of a radius tell them apart.
    """
    known = readings[np.isfinite(readings)]
    if not known.size:
        raise ValueError("no reading is a number")
    low, high = np.quantile(known, _MIDDLE)
    width = high - low
    near = known if width == 0.0 else known[(known >= low - fence * width) & (known <= high + fence * width)]
    return float(near.min()), float(near.max())
