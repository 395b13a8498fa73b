r"""Splines of degree 1 by sensor: what a linear method learns is one broken line for each sensor.

With knots ``0 = t_0 < .. < t_S = 1`` the lift of one feature is its S ramps

    z_k(x) = clip(x, t_k, t_{k+1}) - t_k,        0 <= z_k <= t_{k+1} - t_k,        sum_k z_k(x) = x  on [0, 1].

The weight w_k is the slope of the line on segment k, and equal weights are the linear model.

**It stretches nothing.** Each z_k is a non-decreasing function of x and their sum is ``clip(x, 0, 1)``, so the changes
``z_k(x) - z_k(x')`` have one sign and sum to at most ``|x - x'|``:

- l1: ``sum_k |z_k - z'_k| = |x - x'|`` on [0, 1], an isometry; summed over the sensors, of the whole l1 norm;
- l2: ``sum_k (z_k - z'_k)^2 <= (sum_k |z_k - z'_k|)^2 <= (x - x')^2``;
- linf: ``max_k |z_k - z'_k| <= |x - x'|``.

So L = 1 in all transport norms (``models.features.lift``): a ball of lifted rows holds the image of the ball of the
same radius of the sensors' readings, and the worst-case risk is a bound for moves of the readings.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.features.lift import check_features, check_size, check_slopes, lead_over_steepness, lesser_steepness
from models.geometry.separable_move import separable_move
from models.geometry.supports import BoxSupport


@dataclass(frozen=True, eq=False)
class SplineLift:
    """``knots`` (P, S + 1) of each of P features, rising from one end of its range to the other.

    Column ``j S + k`` is ramp k of feature j. Ranges need not be [0, 1]: the same proof holds in other units, L = 1.
    """

    knots: FloatArray

    @property
    def n_inputs(self) -> int:
        """Number of features that go in."""
        return int(self.knots.shape[0])

    @property
    def segments(self) -> int:
        """Number of segments S of each feature."""
        return int(self.knots.shape[1]) - 1

    @property
    def n_outputs(self) -> int:
        """Number of features that come out, P S."""
        return self.n_inputs * self.segments

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the knots."""
        digest = hashlib.sha256(f"spline-lift/1 {self.n_inputs} {self.segments}".encode())
        digest.update(np.ascontiguousarray(self.knots, dtype="<f8").tobytes())
        return digest.hexdigest()

    @property
    def support(self) -> BoxSupport:
        """The box of the ramps, from 0 to the width of each one's segment."""
        return BoxSupport(np.zeros(self.n_outputs), np.diff(self.knots).ravel())

    def apply(self, features: FloatArray) -> FloatArray:
        """Ramps (n, P S) of features (n, P); outside its range those of the nearer end."""
        check_features(features, self.n_inputs)
        ramps = np.clip(features[:, :, None], self.knots[:, :-1], self.knots[:, 1:]) - self.knots[:, :-1]
        return np.asarray(ramps.reshape(len(features), self.n_outputs))

    def curves(self, slopes: FloatArray) -> FloatArray:
        """Heights (..., P, S + 1) at the knots of each sensor's line, 0 at its low end, of slopes (..., P S)."""
        check_slopes(slopes, self.n_outputs)
        rises = slopes.reshape(*slopes.shape[:-1], self.n_inputs, self.segments) * np.diff(self.knots)
        return np.concatenate([np.zeros((*rises.shape[:-1], 1)), np.cumsum(rises, axis=-1)], axis=-1)

    def gradient(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """Slope (n, P) of each line at each row; at a knot that of the segment above, outside the range none."""
        check_features(features, self.n_inputs)
        check_slopes(slopes, self.n_outputs)
        segment = (features[:, :, None] >= self.knots[:, 1:-1]).sum(axis=2)
        lines = slopes.reshape(len(features), self.n_inputs, self.segments)
        found = np.take_along_axis(lines, segment[:, :, None], axis=2)[:, :, 0]
        return np.where((features >= self.knots[:, 0]) & (features <= self.knots[:, -1]), found, 0.0)

    def shares(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """Height of each line at each row above that in the middle of its range, (n, P): they sum to the whole."""
        away = self.apply(features) - self.apply(0.5 * (self.knots[:, 0] + self.knots[:, -1])[None])
        return np.asarray((away * slopes).reshape(len(features), self.n_inputs, self.segments).sum(axis=2))

    def steepness(self, slopes: FloatArray, transport_norm: TransportNorm) -> FloatArray:
        """Dual norm of the steepest segments of the lines: attained where no two sensors exclude one another."""
        check_slopes(slopes, self.n_outputs)
        lines = np.abs(slopes).reshape(*slopes.shape[:-1], self.n_inputs, self.segments)
        return lesser_steepness(lines.max(axis=-1), slopes, 1.0, transport_norm)

    def lipschitz(self, transport_norm: TransportNorm) -> float:
        """1: see the proof above."""
        return 1.0

    def least_move(
        self, slopes: FloatArray, features: FloatArray, lead: FloatArray, transport_norm: TransportNorm
    ) -> FloatArray:
        """The larger of ``lead / steepness`` and the bound of ``models.geometry.separable_move``, (n, R).

        With linf that is exact, with l1 and l2 exact within a segment and near it beyond. Moves out of the range change
        no line, so the answer is infinite where no place in the sensor ranges loses the lead.
        """
        check_features(features, self.n_inputs)
        whole = lead_over_steepness(lead, self.steepness(slopes, transport_norm)[None])
        return np.maximum(whole, separable_move(self.knots, self.curves(slopes), features, lead, transport_norm))


def spline_lift(n_features: int, segments: int) -> SplineLift:
    """The lift of ``n_features`` features with ``segments`` segments each; ``ProblemError`` for a count below 1."""
    if n_features < 1 or segments < 1:
        raise ProblemError(f"a spline needs at least one feature and one segment, got {n_features} and {segments}")
    check_size(n_features * segments)
    return SplineLift(np.tile(np.linspace(0.0, 1.0, segments + 1), (n_features, 1)))


def spline_between(low: FloatArray, high: FloatArray, segments: int) -> SplineLift:
    """The lift of features in ranges of their own, ``low`` (P,) below ``high`` (P,), in the units of these.

    :class:`ProblemError` without a segment, or where a low is not below its high.
    """
    if segments < 1 or not (low < high).all():
        raise ProblemError("a spline needs at least one segment, and every low below its high")
    check_size(len(low) * segments)
    return SplineLift(np.linspace(low, high, segments + 1, axis=1))
