"""The range that a sensor's readings speak for: without likely mistakes, and for classes without long tails."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray

FENCE = 5.0
"""A reading this many middle widths beyond the middle is taken for a mistake."""

LONG = 4.0
"""Middle widths of a range beyond which its readings have long tails: even readings have 1.1, normal ones 2 to 2.5."""
TAIL = 1.0
"""Middle widths beyond the middle at which long tails are cut: of normal readings one in a million lies beyond."""

_MIDDLE = (0.05, 0.95)


def likely_range(
    readings: FloatArray, fence: float = FENCE, counts: FloatArray | None = None
) -> tuple[float, float]:
    """Least and largest of readings (N,), N > 0, without those that are far from nearly all others; NaN is none.

    With q the quantiles .05 and .95 and w = q_.95 - q_.05 those in [q_.05 - f w, q_.95 + f w] count, f the ``fence``.
    All count where w is 0: a sensor that seldom moves. A mistyped value in a range squeezes all others into a part of
    it, in which neither the segments of a spline nor the unit of a radius tell them apart.

    ``counts`` (N,) above 0 is how often each reading was made; quantiles are readings then, of which none lies between.
    """
    return _without_mistakes(*_middle(readings, counts), fence)


def range_for_classes(readings: FloatArray, counts: FloatArray | None = None) -> tuple[float, float]:
    """Ends between which readings (N,), N > 0, tell classes apart: :func:`likely_range`, with long tails cut.

    With q and w as there, a range wider than :data:`LONG` w is cut at ``q_.05 - TAIL w`` and ``q_.95 + TAIL w``. Nearly
    all readings fill a third of what is left, and those beyond are told from them, though not from one another.
    """
    known, first, last = _middle(readings, counts)
    low, high = _without_mistakes(known, first, last, FENCE)
    width = last - first
    if width == 0.0 or high - low <= LONG * width:
        return low, high
    return float(max(low, first - TAIL * width)), float(min(high, last + TAIL * width))


def _middle(readings: FloatArray, counts: FloatArray | None) -> tuple[FloatArray, float, float]:
    """Readings that are numbers, and their quantiles .05 and .95; ``ValueError`` where none is."""
    finite = np.isfinite(readings)
    known = readings[finite]
    if not known.size:
        raise ValueError("no reading is a number")
    if counts is None:
        first, last = np.quantile(known, _MIDDLE)
    else:
        first, last = np.quantile(known, _MIDDLE, method="inverted_cdf", weights=counts[finite])
    return known, float(first), float(last)


def _without_mistakes(known: FloatArray, first: float, last: float, fence: float) -> tuple[float, float]:
    """Least and largest of readings without those beyond the fence around their middle from ``first`` to ``last``."""
    width = last - first
    near = known if width == 0.0 else known[(known >= first - fence * width) & (known <= last + fence * width)]
    return float(near.min()), float(near.max())
