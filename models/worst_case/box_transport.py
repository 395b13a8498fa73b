r"""What moving a sample inside a box can add to its loss, for one price of transport.

For one sample and one side (the loss falls or rises with ``<w, x>``) the gain at multiplier ``lam`` is

    max { sum_p |w_p| d_p - lam ||d|| : 0 <= d_p <= clearance_p },

with ``clearance_p`` the distance to the wall in the harmful direction. It is convex in ``lam`` with slope ``-||d||``,
and any feasible ``d`` gives an affine minorant of it in ``(w, lam)``. The optimal ``d`` has one number to find, its
*extent*:

- transport norm l1: ``d_p = clearance_p`` where ``|w_p|`` is above the extent, which is the multiplier itself, else 0;
- transport norm l-inf: ``d_p = min(clearance_p, extent)``, the extent at the wall where the slope left is ``lam``;
- transport norm l2: ``d_p = min(clearance_p, extent |w_p|)`` with ``||d|| = lam * extent``, found between two walls in
  closed form after sorting them.

Columns with a zero weight are left out by the caller. Source: the multipliers of DRFL Propositions 6.3 and 6.4
eliminated in closed form.

What a move proves at other weights. Let ``far_ip`` be how far the optimal plan at w moves feature p of row i (with
l-inf, where all features move at the cost of one, the row's extent for every p). A plan may take each feature either
way, up to ``far_ip`` and its wall, within the same budget: no entry of the move is longer. So at any u, with
``above_p`` the mean of ``min(far_ip, clearance)`` on the side that is to its harm where u_p > 0, and ``below_p`` where
u_p < 0,

    r(u) >= plane(u) + sum_p max(above_p u_p, -below_p u_p)
          = plane(u) + <(above - below) / 2, u> + <swing, |u|>,      swing = (above + below) / 2 >= 0,

``plane`` being the mean loss of the rows, flipped and weighted as the plan has them but not moved. At w each feature is
moved where the plan moves it, so the bound is the risk itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.geometry.supports import BoxSupport


class Gain(NamedTuple):
    """Gain, length of the move ``||d||`` and extent, each of shape (n,)."""

    gain: FloatArray
    move: FloatArray
    extent: FloatArray


class Gains(Protocol):
    """The gains of n samples as a function of the price."""

    def at(self, multiplier: float) -> Gain:
        """Gain, move and extent of every sample at ``multiplier >= 0``."""

    def take(self, rows: np.ndarray) -> Gains:
        """The same for some of the samples."""


def make_gains(clearance: FloatArray, slope: FloatArray, norm: TransportNorm) -> Gains:
    """Gains of samples with ``clearance`` (n, P) to move and ``slope = |w| > 0`` (P,)."""
    if norm == "l1":
        return _L1Gains(clearance, slope)
    if norm == "linf":
        return _LinfGains(*stops(clearance, slope))
    return _l2_gains(clearance, slope)


def move_sizes(clearance: FloatArray, slope: FloatArray, norm: TransportNorm, extent: FloatArray) -> FloatArray:
    """Optimal ``d`` (n, P) for the reaches found by :meth:`Gains.at`."""
    if norm == "l1":
        return np.asarray(np.where(slope > extent[:, None], clearance, 0.0))
    if norm == "linf":
        return np.minimum(clearance, extent[:, None])
    return np.minimum(clearance, extent[:, None] * slope)


def both_ways(
    features: FloatArray, support: BoxSupport, sides: FloatArray, far: FloatArray, counts: FloatArray
) -> FloatArray:
    """How far n samples can be moved to their harm, no feature by more than ``far``: sums (2, P).

    First where a weight is above 0, then where it is below: the harm is on opposite sides, and so are the walls.
    ``sides`` (n,) is above 0 where the loss rises as ``<w, x>`` falls; ``far`` is (n, P), or (n, 1) for all features;
    ``counts`` (n,) is how often each sample counts.
    """
    down, up = np.maximum(features - support.low, 0.0), np.maximum(support.high - features, 0.0)
    falls = (sides > 0)[:, None]
    above, below = np.minimum(np.where(falls, down, up), far), np.minimum(np.where(falls, up, down), far)
    return np.stack([counts @ above, counts @ below])


@dataclass(frozen=True)
class _L1Gains:
    clearance: FloatArray
    slope: FloatArray

    def at(self, multiplier: float) -> Gain:
        gain = self.clearance @ np.maximum(self.slope - multiplier, 0.0)
        move = self.clearance @ (self.slope > multiplier).astype(np.float64)
        return Gain(gain, move, np.full_like(move, multiplier))

    def take(self, rows: np.ndarray) -> Gains:
        return _L1Gains(self.clearance[rows], self.slope)


def stops(clearance: FloatArray, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Transport norm l-inf: the reaches (n, P + 1) worth stopping at, 0 and each wall, and what is gained up to there.

    The gain at a price is the largest of ``gained - multiplier * extent`` over them.
    """
    n, width = clearance.shape
    order = clearance.argsort(axis=1)
    extents, gained = np.zeros((n, width + 1)), np.zeros((n, width + 1))
    extents[:, 1:] = clearance.ravel()[order + np.arange(0, clearance.size, width)[:, None]]
    slope_left = slope[order][:, ::-1].cumsum(axis=1)[:, ::-1]
    np.cumsum(slope_left * (extents[:, 1:] - extents[:, :-1]), axis=1, out=gained[:, 1:])
    return extents, gained


@dataclass(frozen=True)
class _LinfGains:
    extents: FloatArray
    gained: FloatArray

    def at(self, multiplier: float) -> Gain:
        heights = self.gained - multiplier * self.extents
        best = heights.argmax(axis=1)[:, None]
        move = np.take_along_axis(self.extents, best, axis=1)[:, 0]
        return Gain(np.take_along_axis(heights, best, axis=1)[:, 0], move, move)

    def take(self, rows: np.ndarray) -> Gains:
        return _LinfGains(self.extents[rows], self.gained[rows])


@dataclass(frozen=True)
class _L2Gains:
    """Column j speaks of the state in which the first j walls are reached, walls in rising order of extent.

    ``brink`` is ``||d|| / extent`` at wall j + 1, ``stuck`` the squared length and ``gained`` the gain of the features
    at their walls, ``free`` the squared slope of the others.
    """

    brink: FloatArray
    stuck: FloatArray
    free: FloatArray
    gained: FloatArray
    extents: FloatArray

    def at(self, multiplier: float) -> Gain:
        if multiplier * multiplier >= self.free[:1, 0].sum():
            nothing = np.zeros(self.brink.shape[0])
            return Gain(nothing, nothing, nothing)
        passed = np.count_nonzero(self.brink > multiplier, axis=1)
        rows = np.arange(passed.shape[0])
        stuck, free = self.stuck[rows, passed], self.free[rows, passed]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            extent = np.sqrt(stuck / (multiplier * multiplier - free))
        low, high = self.extents[rows, passed], self.extents[rows, passed + 1]
        # Where rounding puts the root outside its stretch, the end of the stretch is as good: the gain is flat there.
        extent = np.clip(np.where(np.isnan(extent), low, extent), low, high)
        inner = np.where(free > 0, extent, 0.0)
        move = np.sqrt(stuck + inner * inner * free)
        return Gain(self.gained[rows, passed] + inner * free - multiplier * move, move, extent)

    def take(self, rows: np.ndarray) -> Gains:
        return _L2Gains(self.brink[rows], self.stuck[rows], self.free[rows], self.gained[rows], self.extents[rows])


def _l2_gains(clearance: FloatArray, slope: FloatArray) -> _L2Gains:
    n, width = clearance.shape
    with np.errstate(over="ignore"):
        wall_extent = clearance / slope
    order = np.argsort(wall_extent, axis=1)
    extents = np.zeros((n, width + 2))
    extents[:, 1:-1] = np.take_along_axis(wall_extent, order, axis=1)
    extents[:, -1] = np.inf
    clearances, slopes = np.take_along_axis(clearance, order, axis=1), slope[order]
    stuck, free, gained = np.zeros((n, width + 1)), np.zeros((n, width + 1)), np.zeros((n, width + 1))
    np.cumsum(clearances * clearances, axis=1, out=stuck[:, 1:])
    free[:, :-1] = np.cumsum((slopes * slopes)[:, ::-1], axis=1)[:, ::-1]
    np.cumsum(clearances * slopes, axis=1, out=gained[:, 1:])
    inside = extents[:, 1:-1] > 0
    with np.errstate(over="ignore", under="ignore"):
        at_wall = np.divide(stuck[:, 1:], extents[:, 1:-1] ** 2, out=np.zeros((n, width)), where=inside)
    return _L2Gains(np.sqrt(at_wall + free[:, 1:]), stuck, free, gained, extents)
