r"""Features by their ranges in the rows, as a plan has them by the ranges of its asset type: what "auto" trains on.

    x'_j = (x_j - low_j) / s_j,        s_j = high_j - low_j over all rows of all sites

A ball of radius r of x' is one in the norm ``||S^{-1} (x - x')||``: one feature alone moves by ``r s_j`` at most. A
score ``<w', x'> + b'`` is ``<w, x> + b`` with ``w = S^{-1} w'``, ``b = b' - <w, low>``; the ramps of a spline on x' are
those of the same spline on x by ``1 / s_j``; products, and what is beside them, stay those of x'. So planes, lifts and
robustness radii are told in the features' own units. Without an intercept nothing is moved, for that would be one: low
is 0, and s_j the largest absolute value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError
from models.features.lift import Lift
from models.features.products import ProductLift
from models.features.scaled import ScaledProducts
from models.features.spline import SplineLift


@dataclass(frozen=True)
class RangeScaling:
    """``low`` (P,) and ``width`` (P,) above 0 of the features as given."""

    low: FloatArray
    width: FloatArray

    @staticmethod
    def none(n_features: int) -> RangeScaling:
        """Features as they are."""
        return RangeScaling(np.zeros(n_features), np.ones(n_features))

    @staticmethod
    def of(features: FloatArray, *, moved: bool) -> RangeScaling:
        """Ranges of features (N, P); ``moved``: they begin at 0 then. ``ProblemError`` where a range overflows."""
        low, high = features.min(axis=0), features.max(axis=0)
        if not moved:
            low, high = np.zeros_like(low), np.abs(features).max(axis=0)
        with np.errstate(over="ignore"):
            width = high - low
        if not np.isfinite(width).all():
            raise ProblemError("a feature's range is beyond what can be computed with: take another unit")
        return RangeScaling(low, wide_enough(low, high))

    def scale(self, features: FloatArray) -> FloatArray:
        """Features (n, P) in shares of their ranges."""
        return np.asarray((features - self.low) / self.width)

    def lift(self, lift: Lift | None) -> Lift | None:
        """The lift of features as given that does what one of scaled features does, up to the units of its ramps."""
        if isinstance(lift, SplineLift):
            ends = lift.knots * self.width[:, None] + self.low[:, None]
            return SplineLift(ends)
        if isinstance(lift, ProductLift):
            return ScaledProducts(lift, self.low, self.width)
        return lift

    def planes(self, planes: FloatArray, lift: Lift | None) -> FloatArray:
        """Planes (..., K + 1), the intercept last, of features as given; ``lift`` is that of scaled features."""
        found = planes.copy()
        if isinstance(lift, SplineLift):
            found[..., :-1] /= np.repeat(self.width, lift.segments)
        elif lift is None:
            found[..., :-1] /= self.width
            found[..., -1] -= found[..., :-1] @ self.low
        return found


def wide_enough(low: FloatArray, high: FloatArray) -> FloatArray:
    """Width of each range (P,), above 0: one that is too narrow for knots counts as none, and has one of its own."""
    return np.where(high - low > 1e-9 * np.maximum(np.abs(low), np.abs(high)), high - low, np.abs(low) + 1.0)
