r"""How far a point must move, at least, until broken lines of its coordinates together have fallen by a given amount.

    min { ||d|| : sum_j c_j(x_j) - c_j(x_j + d_j) >= lead,  c_j linear between knots, constant beyond

With l-inf every coordinate takes the best within ``|d_j| <= t``: what that falls by grows with t, and t is bisected.
With l1 (p = 1) and l2 (p = 2) the problem is not convex. Where every ``|d_j|`` lies in a range, for a price ``v > 0``

    sum_j c_j(x_j) - c_j(x_j + d_j)  <=  M + v ||d||_p^p,
    M = sum_j max_{d_j} [c_j(x_j) - c_j(x_j + d_j) - v |d_j|^p],

so that a move in these ranges that falls by the lead has ``||d||_p^p >= (lead - M) / v``: a bound for each price (the
Lagrangian dual, that of the lines' concave envelopes in ``|d|^p``). The best price is where the moves of M just fall by
the lead; such moves are also upper bounds. The ranges begin at ``[0, C]``, with C the shortest move known: no entry of
d is longer than d, so ``min(C, bound)`` holds of all moves. While the two are apart, the range of the coordinate that
the envelope flatters most is cut in two (branch and bound); the bound is the least over the parts.

All answers are lower bounds: the lead is lessened by more than the sums can be off by rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, TransportNorm

_ROUNDING = 1e-12
"""Share of all that the lines can fall by of which sums over them may be off."""
_HALVINGS = 38  # of a bracket: 2^-38 is some 4e-12 of its width
_PRICES = 26  # of the multiplier; each step is a search by itself
_CUTS = 16
"""Cuts of a range, at most, for one answer."""
_NEAR = 0.98
"""A lower bound is near enough at this share of the upper one."""
_AT_ONCE = 400_000
"""Numbers, of rows times coordinates times segments, that are worked on together."""


def separable_move(
    knots: FloatArray, heights: FloatArray, points: FloatArray, lead: FloatArray, norm: TransportNorm
) -> FloatArray:
    """Lower bounds (n, R) of the length of the shortest moves; infinite where no move falls by the lead.

    ``knots`` (P, S + 1) rise, ``heights`` (R, P, S + 1) are those of the lines there, ``points`` (n, P) (beyond the
    knots the nearer end counts), ``lead`` (n, R) at or above 0. With l-inf the answer is exact, to rounding. With the
    others only the least of a row's R answers is made as near as it can be.
    """
    found = np.empty(lead.shape)
    rows = max(1, _AT_ONCE // heights.size)
    for start in range(0, len(points), rows):
        part = slice(start, start + rows)
        found[part] = _moves(knots, heights, np.clip(points[part], knots[:, 0], knots[:, -1]), lead[part], norm)
    return found


def _moves(
    knots: FloatArray, heights: FloatArray, points: FloatArray, lead: FloatArray, norm: TransportNorm
) -> FloatArray:
    n_points, n_lines = lead.shape
    lines = _Lines.of(knots, np.tile(heights, (n_points, 1, 1)), np.repeat(points, n_lines, axis=0), lead.ravel())
    even, enough = _even_moves(lines)
    if norm == "linf":
        return np.where(lead > 0, even.reshape(lead.shape), 0.0)
    power = 1 if norm == "l1" else 2
    widest = enough * points.shape[1] ** (1.0 / power)
    # A move is at least as long as its longest entry, so an even move bounds those of another norm.
    nearest = widest.reshape(lead.shape).min(axis=1)
    open_ = np.flatnonzero(np.isfinite(even) & (even < np.repeat(nearest, n_lines)))
    even[open_] = _priced_moves(lines.take(open_), even[open_], widest[open_], power)
    return np.where(lead > 0, even.reshape(lead.shape), 0.0)


@dataclass(frozen=True)
class _Lines:
    """m points and what their lines fall by: ``points`` (m, P), ``lead`` (m,), ``fallen`` and ``slopes`` (m, P, S).

    ``fallen`` is from the point to the ``left`` (P, S) knot of each segment, ``slopes`` how it grows to the ``right``.
    """

    points: FloatArray
    lead: FloatArray
    fallen: FloatArray
    slopes: FloatArray
    left: FloatArray
    right: FloatArray

    @staticmethod
    def of(knots: FloatArray, heights: FloatArray, points: FloatArray, lead: FloatArray) -> _Lines:
        slopes = -np.diff(heights, axis=2) / np.diff(knots)
        segment = (points[:, :, None] >= knots[:, 1:-1]).sum(axis=2)[:, :, None]
        past = points - np.take_along_axis(np.broadcast_to(knots, heights.shape), segment, axis=2)[:, :, 0]
        at = np.take_along_axis(heights, segment, axis=2)[:, :, 0]
        at = at - np.take_along_axis(slopes, segment, axis=2)[:, :, 0] * past
        fallen = at[:, :, None] - heights
        scale = lead + np.abs(fallen).max(axis=2).sum(axis=1)
        return _Lines(points, lead - _ROUNDING * scale, fallen[:, :, :-1], slopes, knots[:, :-1], knots[:, 1:])

    def take(self, rows: NDArray[np.intp]) -> _Lines:
        """Some of the points."""
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in ("points", "lead", "fallen", "slopes")}
        return replace(self, **parts)

    def best(self, least: FloatArray, most: FloatArray, price: FloatArray, power: int) -> tuple[FloatArray, ...]:
        """The parts of M (m, P) for ``|d_j|`` from ``least`` to ``most`` (m, P), what each falls by, and its ``|d_j|``.

        Minus infinity where no place within the knots is that far. ``price`` (m,).
        """
        at, tax = self.points[:, :, None], price[:, None, None]
        value = np.where(least > 0.0, -np.inf, 0.0)  # where nothing is least, to stay is one of the moves
        fall, length = np.zeros(self.points.shape), np.zeros(self.points.shape)
        sides = [(at - most[:, :, None], at + most[:, :, None])]
        if least.any():
            sides = [(at + least[:, :, None], sides[0][1]), (sides[0][0], at - least[:, :, None])]
        for nearest, farthest in sides:
            low, high = np.maximum(self.left, nearest), np.minimum(self.right, farthest)
            away = low > high
            # The fall less the price is a parabola on each segment, or linear: best at its vertex, or at an end.
            ends = [low, high]
            if power == 2:
                ends = [np.clip(at + self.slopes / (2.0 * tax), low, np.maximum(low, high))]
            for end in ends:
                falls = self.fallen + self.slopes * (end - self.left)
                lengths = np.abs(end - at)
                values = np.where(away, -np.inf, falls - tax * lengths**power)
                best = values.argmax(axis=2)[:, :, None]
                found = np.take_along_axis(values, best, axis=2)[:, :, 0]
                better = found > value
                value = np.where(better, found, value)
                fall = np.where(better, np.take_along_axis(falls, best, axis=2)[:, :, 0], fall)
                length = np.where(better, np.take_along_axis(lengths, best, axis=2)[:, :, 0], length)
        return value, fall, length


def _even_moves(lines: _Lines) -> tuple[FloatArray, FloatArray]:
    """Ends (m,) between which the least t lies where moves of ``|d_j| <= t`` fall by the lead; infinite: none does."""
    free, none = np.zeros(len(lines.lead)), np.zeros(lines.points.shape)

    def short(most: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(lines.best(none, none + most[:, None], free, 1)[1].sum(axis=1) < lines.lead)

    widest = float((lines.right[:, -1] - lines.left[:, 0]).max())
    never = short(free + widest)
    low, high = free.copy(), free + widest
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        holds = short(middle)
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return np.where(never, np.inf, low), np.where(never, np.inf, high)


@dataclass(frozen=True)
class _Part:
    """Ranges (m, P) of the moves, the ``bound`` (m,) in them, and where (m,) to cut which coordinate next."""

    least: FloatArray
    most: FloatArray
    bound: FloatArray
    coordinate: NDArray[np.intp]
    cut: FloatArray


def _priced_moves(lines: _Lines, low: FloatArray, high: FloatArray, power: int) -> FloatArray:
    """Lower bounds (m,), at least ``low``; ``high`` are lengths of moves that fall by the lead."""
    high, rows = high.copy(), np.arange(len(low))
    none = np.zeros(lines.points.shape)
    root, reached = _bounded(lines, none, none + high[:, None], power)
    high = np.minimum(high, reached)
    parts = [root]
    for _ in range(_CUTS):
        bounds = np.stack([part.bound for part in parts])
        low[rows] = np.maximum(low[rows], np.minimum(bounds.min(axis=0), high[rows]))
        kept = low[rows] < _NEAR * high[rows]
        rows, weakest = rows[kept], bounds.argmin(axis=0)[kept]
        if not rows.size:
            break
        lines = lines.take(np.flatnonzero(kept))
        parts = [_taken(part, kept) for part in parts]
        chosen = _chosen(parts, weakest)
        at = np.arange(len(rows)), chosen.coordinate
        near, far = chosen.most.copy(), chosen.least.copy()
        near[at] = far[at] = chosen.cut
        halves = []
        for least, most in ((chosen.least, near), (far, chosen.most)):
            half, reached = _bounded(lines, least, np.minimum(most, high[rows, None]), power)
            high[rows] = np.minimum(high[rows], reached)
            halves.append(half)
        # The weakest part gives way to its first half, the second one joins the list.
        parts = [_replaced(part, halves[0], weakest == k) for k, part in enumerate(parts)] + [halves[1]]
    return low


def _bounded(lines: _Lines, least: FloatArray, most: FloatArray, power: int) -> tuple[_Part, FloatArray]:
    """The best bound (m,) in the ranges over all prices, and the shortest length met that falls by the lead."""
    tiny = np.finfo(float).tiny
    steepest = np.abs(lines.slopes).max(axis=2)
    if power == 1:
        top = steepest.max(axis=1)
    else:
        top = 0.5 * (steepest**2).sum(axis=1) / np.maximum(lines.lead, tiny)
    high = np.maximum(top, 1e-150) * (1.0 + 1e-6)
    low = 1e-12 * high
    value, more, far = lines.best(least, most, low, power)
    bound = (lines.lead - value.sum(axis=1)) / low
    _, less, near = lines.best(least, most, high, power)
    reached = np.full(len(top), np.inf)
    for _ in range(_PRICES):
        price = 0.5 * (low + high)
        value, fall, length = lines.best(least, most, price, power)
        bound = np.maximum(bound, (lines.lead - value.sum(axis=1)) / price)
        lost = fall.sum(axis=1) >= lines.lead
        reached = np.where(lost, np.minimum(reached, (length**power).sum(axis=1)), reached)
        low, high = np.where(lost, price, low), np.where(lost, high, price)
        more, far = np.where(lost[:, None], fall, more), np.where(lost[:, None], length, far)
        less, near = np.where(lost[:, None], less, fall), np.where(lost[:, None], near, length)
    # Between two prices as near as these the moves jump where a line's envelope leaves it.
    missing = lines.lead - less.sum(axis=1)
    jump = np.abs(far - near)
    coordinate, rows = jump.argmax(axis=1), np.arange(len(top))
    between = np.maximum((more - less).sum(axis=1), np.maximum(0.1 * missing, tiny))  # 0 where rounding is all
    share = np.clip(missing / between, 0.1, 0.9)
    start, end = near[rows, coordinate], far[rows, coordinate]
    part = _Part(least, most, np.maximum(bound, 0.0) ** (1.0 / power), coordinate, start + share * (end - start))
    return part, reached ** (1.0 / power)


def _taken(part: _Part, rows: NDArray[np.bool_]) -> _Part:
    return _Part(part.least[rows], part.most[rows], part.bound[rows], part.coordinate[rows], part.cut[rows])


def _chosen(parts: list[_Part], which: NDArray[np.intp]) -> _Part:
    """Of each row the part of that number."""
    chosen = parts[0]
    for k, part in enumerate(parts[1:], start=1):
        chosen = _replaced(chosen, part, which == k)
    return chosen


def _replaced(part: _Part, other: _Part, rows: NDArray[np.bool_]) -> _Part:
    wide = rows[:, None]
    return _Part(
        np.where(wide, other.least, part.least), np.where(wide, other.most, part.most),
        np.where(rows, other.bound, part.bound), np.where(rows, other.coordinate, part.coordinate),
        np.where(rows, other.cut, part.cut),
    )
