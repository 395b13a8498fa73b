"""Centre and unit of each feature over all rows, for weights of which a unit does about the same to a risk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.basics import FloatArray
from models.problem import SiteProblem

_STILL = 64 * float(np.finfo(np.float64).eps)
"""Spread of a feature, over its largest value, that rounding leaves where the feature stands still."""
_LEAST = 1e-3
"""Unit of such a feature over its largest value, at least: the rounding of a slope then stays rounding."""


def centred(sites: Sequence[SiteProblem]) -> tuple[FloatArray, FloatArray]:
    """All rows and their centre (P,), zero without an intercept, which is what makes a centre free.

    The mean of what the mean leaves takes the rounding of a long sum out again.
    """
    rows = np.vstack([site.features for site in sites])
    centre = rows.mean(axis=0) if sites[0].spec.fit_intercept else np.zeros(rows.shape[1])
    return rows, centre + (rows - centre).mean(axis=0) if sites[0].spec.fit_intercept else centre


def units_of(rows: FloatArray, centre: FloatArray, radius: float) -> FloatArray:
    """Unit (P,) of each feature: the root of its variance and the square of the radius, 1 where both are 0.

    Of a feature that stands still the variance is rounding, by which rounding would pass for a slope: it counts as 0.
    """
    spread, largest = np.sqrt(np.square(rows - centre).mean(axis=0)), np.abs(rows).max(axis=0)
    moves = spread > _STILL * largest
    units = np.sqrt(np.where(moves, np.square(spread), 0.0) + radius * radius)
    return np.maximum(np.where(units > 0, units, 1.0), np.where(moves, 0.0, _LEAST * largest))
