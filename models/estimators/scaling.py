r"""Features by their ranges in the rows, as a plan has them by the ranges of its asset type: what "auto" trains on.

    x'_j = (x_j - low_j) / s_j,        s_j = high_j - low_j over all rows of all sites

A ball of radius r of x' is one in the norm ``||S^{-1} (x - x')||``: one feature alone moves by ``r s_j`` at most. A
score ``<w', x'> + b'`` is ``<w, x> + b`` with ``w = S^{-1} w'``, ``b = b' - <w, low>``; the ramps of a spline on x' are
those of the same spline on x by ``1 / s_j``; products, and what is beside them, stay those of x'. So planes, lifts and
robustness radii are told in the features' own units. Without an intercept nothing is moved, for that would be one: low
is 0, and s_j the largest absolute value.

Readings that are likely mistakes, and of classes long tails, are cut to the ends of the others, as a drafted range of a
contract cuts them (``models.features.likely_range``): low and high are of the cut ones. What is cut is nearer to any
other reading than what is not is, so a ball around the rows as given is within the one around the cut rows.

A target stays in its own unit; the cost of moving it counts in shares of its range s: ``kappa / s`` for each unit. That
is the problem of the scaled target, whose risk is the s-th part (of the Huber loss the s^2-th).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.basics import FloatArray, ProblemError
from models.features.lift import Lift
from models.features.likely_range import likely_range, range_for_classes
from models.features.products import ProductLift
from models.features.scaled import ScaledProducts
from models.features.spline import SplineLift

_NARROW: Final = 1e-2
"""Range in [0, 1] below which a column is in another unit than shares of a known range."""


@dataclass(frozen=True)
class RangeScaling:
    """``low`` (P,) and ``width`` (P,) above 0 of the features as given, cut to ``ends`` (2, P): infinite for none."""

    low: FloatArray
    width: FloatArray
    ends: FloatArray

    @staticmethod
    def none(n_features: int) -> RangeScaling:
        """Features as they are."""
        return RangeScaling(np.zeros(n_features), np.ones(n_features), _no_ends(n_features))

    @staticmethod
    def of(features: FloatArray, *, moved: bool, ends: FloatArray | None = None) -> RangeScaling:
        """Ranges of features (N, P), cut to ``ends``; ``moved``: they begin at 0 then.

        ``ProblemError`` where a range overflows.
        """
        ends = _no_ends(features.shape[1]) if ends is None else ends
        kept = np.clip(features, *ends)
        low, high = kept.min(axis=0), kept.max(axis=0)
        if not moved:
            low, high = np.zeros_like(low), np.abs(kept).max(axis=0)
        with np.errstate(over="ignore"):
            width = high - low
        if not np.isfinite(width).all():
            raise ProblemError("a feature's range is beyond what can be computed with: take another unit")
        return RangeScaling(low, wide_enough(low, high), ends)

    def scale(self, features: FloatArray) -> FloatArray:
        """Features (n, P), cut, in shares of their ranges."""
        return np.asarray((np.clip(features, *self.ends) - self.low) / self.width)

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


def likely_ends(features: FloatArray, counts: FloatArray, *, classes: bool) -> FloatArray:
    """Ends (2, P) to which features (N, P), whose rows count so often (N,), are cut; infinite where none is cut.

    Without likely mistakes, and where ``classes`` are told apart without long tails, as a drafted range.
    """
    found = _no_ends(features.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for j, readings in enumerate(features.T):
            low, high = range_for_classes(readings, counts) if classes else likely_range(readings, counts=counts)
            found[0, j] = low if low > readings.min() else -np.inf
            found[1, j] = high if high < readings.max() else np.inf
    return found


def _no_ends(n_features: int) -> FloatArray:
    return np.repeat([[-np.inf], [np.inf]], n_features, axis=1)


def is_scaled(values: FloatArray) -> bool:
    """Whether columns (N, P) are taken for scaled ones, by ranges that are known better than from these rows.

    All lie in [0, 1], and none that varies within less than a hundredth of it: that is another unit.
    """
    if values.min() < 0.0 or values.max() > 1.0:
        return False
    ranges = np.ptp(values, axis=0)
    return not ((ranges > 0.0) & (ranges < _NARROW)).any()


def target_scale(targets: FloatArray) -> float:
    """Range of targets (N,) that are in a unit of their own, else 1; ``ProblemError`` where it overflows."""
    column = targets[:, None]
    return 1.0 if is_scaled(column) else float(RangeScaling.of(column, moved=True).width[0])


def wide_enough(low: FloatArray, high: FloatArray) -> FloatArray:
    """Width of each range (P,), above 0: one that is too narrow for knots counts as none, and has one of its own."""
    return np.where(high - low > 1e-9 * np.maximum(np.abs(low), np.abs(high)), high - low, np.abs(low) + 1.0)
