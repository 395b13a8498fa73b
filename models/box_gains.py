r"""What moving a sample inside a box can add to its loss, for one price of transport.

For one sample and one side (the loss falls or rises with ``<w, x>``) the gain at price ``lam`` is

    max { sum_p |w_p| d_p - lam ||d|| : 0 <= d_p <= room_p },

with ``room_p`` the distance to the wall in the harmful direction. It is convex in ``lam`` with slope ``-||d||``, and
any feasible ``d`` gives an affine minorant of it in ``(w, lam)``. The optimal ``d`` has one number to find, its
*reach*:

- transport norm l1: ``d_p = room_p`` where ``|w_p|`` is above the reach, else 0, the reach being the price itself;
- transport norm l-inf: ``d_p = min(room_p, reach)``, the reach at the wall where the slope left falls to ``lam``;
- transport norm l2: ``d_p = min(room_p, reach |w_p|)`` with ``||d|| = lam * reach``, found between two walls in closed
  form after sorting them.

Columns with a zero weight are left out by the caller. Source: the multipliers of DRFL Propositions 6.3 and 6.4
eliminated in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from models.problem import FloatArray, TransportNorm


class Gain(NamedTuple):
    """Gain, length of the move ``||d||`` and reach, each of shape (n,)."""

    gain: FloatArray
    move: FloatArray
    reach: FloatArray


class Gains(Protocol):
    """The gains of n samples as a function of the price."""

    def at(self, price: float) -> Gain:
        """Gain, move and reach of every sample at ``price >= 0``."""
        ...

    def take(self, rows: np.ndarray) -> Gains:
        """The same for some of the samples."""
        ...


def make_gains(room: FloatArray, slope: FloatArray, norm: TransportNorm) -> Gains:
    """Gains of samples with ``room`` (n, P) to move and ``slope = |w| > 0`` (P,)."""
    if norm == "l1":
        return _L1Gains(room, slope)
    if norm == "linf":
        return _LinfGains(*stops(room, slope))
    return _l2_gains(room, slope)


def move_sizes(room: FloatArray, slope: FloatArray, norm: TransportNorm, reach: FloatArray) -> FloatArray:
    """Optimal ``d`` (n, P) for the reaches found by :meth:`Gains.at`."""
    if norm == "l1":
        return np.asarray(np.where(slope > reach[:, None], room, 0.0))
    if norm == "linf":
        return np.minimum(room, reach[:, None])
    return np.minimum(room, reach[:, None] * slope)


@dataclass(frozen=True)
class _L1Gains:
    room: FloatArray
    slope: FloatArray

    def at(self, price: float) -> Gain:
        gain = self.room @ np.maximum(self.slope - price, 0.0)
        move = self.room @ (self.slope > price).astype(np.float64)
        return Gain(gain, move, np.full_like(move, price))

    def take(self, rows: np.ndarray) -> Gains:
        return _L1Gains(self.room[rows], self.slope)


def stops(room: FloatArray, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Transport norm l-inf: the reaches (n, P + 1) worth stopping at, 0 and each wall, and what is gained up to there.

    The gain at a price is the largest of ``gained - price * reach`` over them.
    """
    n, width = room.shape
    order = room.argsort(axis=1)
    reaches, gained = np.zeros((n, width + 1)), np.zeros((n, width + 1))
    reaches[:, 1:] = room.ravel()[order + np.arange(0, room.size, width)[:, None]]
    slope_left = slope[order][:, ::-1].cumsum(axis=1)[:, ::-1]
    np.cumsum(slope_left * (reaches[:, 1:] - reaches[:, :-1]), axis=1, out=gained[:, 1:])
    return reaches, gained


@dataclass(frozen=True)
class _LinfGains:
    reaches: FloatArray
    gained: FloatArray

    def at(self, price: float) -> Gain:
        heights = self.gained - price * self.reaches
        best = heights.argmax(axis=1)[:, None]
        move = np.take_along_axis(self.reaches, best, axis=1)[:, 0]
        return Gain(np.take_along_axis(heights, best, axis=1)[:, 0], move, move)

    def take(self, rows: np.ndarray) -> Gains:
        return _LinfGains(self.reaches[rows], self.gained[rows])


@dataclass(frozen=True)
class _L2Gains:
    """Column j speaks of the state in which the first j walls are reached, walls in rising order of reach.

    ``brink`` is ``||d|| / reach`` at wall j + 1, ``stuck`` the squared length and ``gained`` the gain of the features
    at their walls, ``free`` the squared slope of the others.
    """

    brink: FloatArray
    stuck: FloatArray
    free: FloatArray
    gained: FloatArray
    reaches: FloatArray

    def at(self, price: float) -> Gain:
        if price * price >= self.free[:1, 0].sum():
            nothing = np.zeros(self.brink.shape[0])
            return Gain(nothing, nothing, nothing)
        passed = np.count_nonzero(self.brink > price, axis=1)
        rows = np.arange(passed.shape[0])
        stuck, free = self.stuck[rows, passed], self.free[rows, passed]
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.sqrt(stuck / (price * price - free))
        low, high = self.reaches[rows, passed], self.reaches[rows, passed + 1]
        # Where rounding puts the root outside its stretch, the end of the stretch is as good: the gain is flat there.
        reach = np.clip(np.where(np.isnan(reach), low, reach), low, high)
        inner = np.where(free > 0, reach, 0.0)
        move = np.sqrt(stuck + inner * inner * free)
        return Gain(self.gained[rows, passed] + inner * free - price * move, move, reach)

    def take(self, rows: np.ndarray) -> Gains:
        return _L2Gains(self.brink[rows], self.stuck[rows], self.free[rows], self.gained[rows], self.reaches[rows])


def _l2_gains(room: FloatArray, slope: FloatArray) -> _L2Gains:
    n, width = room.shape
    with np.errstate(over="ignore"):
        wall_reach = room / slope
    order = np.argsort(wall_reach, axis=1)
    reaches = np.zeros((n, width + 2))
    reaches[:, 1:-1] = np.take_along_axis(wall_reach, order, axis=1)
    reaches[:, -1] = np.inf
    rooms, slopes = np.take_along_axis(room, order, axis=1), slope[order]
    stuck, free, gained = np.zeros((n, width + 1)), np.zeros((n, width + 1)), np.zeros((n, width + 1))
    np.cumsum(rooms * rooms, axis=1, out=stuck[:, 1:])
    free[:, :-1] = np.cumsum((slopes * slopes)[:, ::-1], axis=1)[:, ::-1]
    np.cumsum(rooms * slopes, axis=1, out=gained[:, 1:])
    inside = reaches[:, 1:-1] > 0
    with np.errstate(over="ignore", under="ignore"):
        at_wall = np.divide(stuck[:, 1:], reaches[:, 1:-1] ** 2, out=np.zeros((n, width)), where=inside)
    return _L2Gains(np.sqrt(at_wall + free[:, 1:]), stuck, free, gained, reaches)
