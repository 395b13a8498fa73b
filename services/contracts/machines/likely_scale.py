"""Whether a sensor's readings speak for a scale of logarithms."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.features.likely_range import likely_range

LEAST_RATIO = 10.0
"""Between the quantiles .95 and .05 of readings: below it a line and its logarithm are much the same."""
MOST_LEAN = 0.5
"""Lean of the logarithms, in parts of that of the readings, up to which they are the more even ones."""

LOG_FENCE = 2.0
"""Middle widths of the logarithms beyond the middle: nine tenths of the readings fill a fifth of the range at least."""

_QUANTILES = (0.05, 0.5, 0.95)


def speaks_for_logarithms(readings: FloatArray) -> bool:
    """Whether readings (N,) spread evenly over their decades rather than over their range; NaN is none.

    All are above 0, q_.95 / q_.05 is at least 10, and the logarithms lean at most half as far to a side as the
    readings: with ``lean = |q_.95 + q_.05 - 2 q_.5| / (q_.95 - q_.05)`` (Bowley's skewness at these quantiles).
    Readings that are even over a range from 0 have the ratio, and no lean.
    """
    known = readings[np.isfinite(readings)]
    if not known.size or known.min() <= 0.0:
        return False
    ends = np.quantile(known, _QUANTILES)
    return bool(ends[2] >= LEAST_RATIO * ends[0] and _lean(np.log(ends)) <= MOST_LEAN * _lean(ends))


def likely_log_range(readings: FloatArray) -> tuple[float, float]:
    """Range of readings above 0 (N,) without those whose logarithms are far from nearly all others."""
    known = readings[np.isfinite(readings)]
    logs = np.log(known)
    low, high = likely_range(logs, LOG_FENCE)
    near = known[(logs >= low) & (logs <= high)]
    return float(near.min()), float(near.max())


def _lean(ends: FloatArray) -> float:
    return float(abs(ends[2] + ends[0] - 2.0 * ends[1]) / (ends[2] - ends[0]))
