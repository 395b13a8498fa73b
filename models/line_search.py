"""Minimum of a convex function of one variable from values and slopes, exact for piecewise linear ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MAX_STEPS = 200


@dataclass(frozen=True)
class Tangent:
    """Value and slope of the function at a point: an affine minorant."""

    at: float
    value: float
    slope: float

    def __call__(self, point: float) -> float:
        """Value of the minorant at ``point``."""
        return self.value + self.slope * (point - self.at)


@dataclass(frozen=True)
class Minimum:
    """Minimiser between two tangents whose mixture is flat.

    ``share * left.slope + (1 - share) * right.slope = 0`` with ``share`` in [0, 1], so the mixture of the two tangents
    is a constant lower bound of the function, equal to ``value`` up to the tolerance.
    """

    at: float
    value: float
    left: Tangent
    right: Tangent
    share: float


def minimise_between(oracle: Callable[[float], Tangent], left: Tangent, right: Tangent, tolerance: float) -> Minimum:
    """Minimise a convex function between two tangents with ``left.slope < 0 < right.slope``.

    Each step goes to where the two tangents cross; a function that is linear on both sides of its minimum is then
    solved exactly in that step. Every third step that failed to halve the bracket is a bisection, so a step count is
    bounded by the bits of a float whatever the shape. Ends when the function lies within ``tolerance`` of the crossing.
    """
    best = min(left, right, key=lambda tangent: tangent.value)
    slow = 0
    for _ in range(MAX_STEPS):
        crossing = _crossing(left, right)
        width = right.at - left.at
        point = 0.5 * (left.at + right.at) if slow >= 2 else crossing
        if not left.at < point < right.at:
            break
        tangent = oracle(point)
        if tangent.value < best.value:
            best = tangent
        if tangent.slope == 0:
            return Minimum(point, tangent.value, tangent, tangent, 1.0)
        done = point == crossing and tangent.value - max(left(point), right(point)) <= tolerance
        if done:
            break
        if tangent.slope < 0:
            left = tangent
        else:
            right = tangent
        slow = 0 if slow >= 2 or right.at - left.at <= 0.5 * width else slow + 1
    return Minimum(best.at, best.value, left, right, right.slope / (right.slope - left.slope))


def _crossing(left: Tangent, right: Tangent) -> float:
    drop = left.value - right(left.at)
    return left.at + drop / (right.slope - left.slope)
