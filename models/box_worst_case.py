r"""Exact worst-case hinge risk when the features live in a box (MATH: section 1, box support).

    r(w) = min_{0 <= lam} radius lam + mean_i max(0, 1 - m_i + kept_i(lam), 1 + m_i + flipped_i(lam) - kappa lam)

with the gains of ``models.box_gains``. At prices above ``||w||_*`` no feature is worth moving, so only prices in
``[0, ||w||_*]`` are searched here; the rest is the unbounded case. Source: DRFL Propositions 6.3 and 6.4 with their
multipliers eliminated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.box_gains import Gains, make_gains, move_sizes
from models.line_search import Tangent, minimise_between
from models.problem import BoxSupport, FloatArray
from models.saddle import FLIPPED, KEPT, UNTOUCHED, Plan, Rows, Saddle

CHUNK = 4096
"""Rows that are sorted at once: all of a small site, a cache-sized part of a large one."""

_ROUNDING = 8 * float(np.finfo(np.float64).eps)


class _Answer(NamedTuple):
    """Per row: loss less what was paid, transport spent, what was done, reach."""

    value: FloatArray
    spent: FloatArray
    act: NDArray[np.int8]
    reach: FloatArray


@dataclass(frozen=True)
class _Block:
    """Some rows, sorted. The gains hold the rows under their labels and then, with a finite kappa, flipped."""

    kept_loss: FloatArray
    flipped_loss: FloatArray
    gains: Gains
    label_flip_cost: float

    def at(self, price: float) -> _Answer:
        gain, move, reach = self.gains.at(price)
        n = self.kept_loss.shape[0]
        kept = self.kept_loss + gain[:n]
        act = np.where(kept > 0, KEPT, UNTOUCHED).astype(np.int8)
        value, spent, reached = np.maximum(kept, 0.0), np.where(kept > 0, move[:n], 0.0), reach[:n]
        if gain.shape[0] > n:
            flipped = self.flipped_loss + gain[n:] - self.label_flip_cost * price
            better = flipped > value
            act[better] = FLIPPED
            value = np.where(better, flipped, value)
            spent = np.where(better, move[n:] + self.label_flip_cost, spent)
            reached = np.where(better, reach[n:], reached)
        return _Answer(value, spent, act, reached)

    def take(self, rows: NDArray[np.intp]) -> _Block:
        n = self.kept_loss.shape[0]
        both = rows if self.flipped_loss.shape[0] == 0 else np.concatenate([rows, rows + n])
        flipped = self.flipped_loss[rows] if self.flipped_loss.shape[0] else self.flipped_loss
        return replace(self, kept_loss=self.kept_loss[rows], flipped_loss=flipped, gains=self.gains.take(both))


@dataclass(frozen=True)
class _Sum:
    """Total of the rows as a function of the price: blocks, and rows known to be linear on the bracket."""

    blocks: Sequence[_Block]
    count: int
    radius: float
    linear: Tangent = Tangent(0.0, 0.0, 0.0)

    def __call__(self, price: float) -> Tangent:
        value, slope = self.linear(price), self.linear.slope
        for block in self.blocks:
            answer = block.at(price)
            value += float(answer.value.sum())
            slope -= float(answer.spent.sum())
        return Tangent(price, self.radius * price + value / self.count, self.radius + slope / self.count)


def solve_box(rows: Rows, support: BoxSupport, floor: Saddle) -> Saddle:
    """Saddle point with a price in ``[0, ||w||_*]``, ``floor`` being the unbounded one, at ``||w||_*``, nothing moved.

    At that price ties between moving and staying are settled by ``floor`` (stay), not by rounding in the sorted walls.
    """
    top = Tangent(floor.price, floor.value, floor.leftover)
    data = _BoxData(rows, support, rows.weights != 0)
    if rows.count <= CHUNK:
        total = _Sum([data.block(slice(0, rows.count))], rows.count, rows.radius)
        left, right = total(0.0), top
    else:
        total, left, right = _condense(data, top)
    if left.slope >= 0:
        return Saddle(left.value, left.at, tuple(data.plans([left.at], [1.0])))
    scale = 1.0 + float(np.abs(rows.margins).mean()) + abs(top.value)
    minimum = minimise_between(total, left, right, _ROUNDING * scale)
    ends = {minimum.left.at: minimum.share}
    if minimum.right is not minimum.left:
        ends[minimum.right.at] = 1.0 - minimum.share
    staying = [replace(plan, share=ends.pop(top.at)) for plan in floor.plans if minimum.right is top]
    return Saddle(minimum.value, minimum.at, (*data.plans(list(ends), list(ends.values())), *staying))


def moves(rows: Rows, support: BoxSupport, plan: Plan, chunk: slice) -> FloatArray:
    """How far a plan moves each feature of some rows, (n, P), always in the harmful direction."""
    if plan.reach is None:
        return np.zeros_like(rows.features[chunk])
    moved = rows.weights != 0
    act = plan.act[chunk]
    sides = rows.labels[chunk] * act
    sizes = np.zeros_like(rows.features[chunk])
    room = _room(rows, support, moved, chunk, sides)
    slope = np.abs(rows.weights[moved])
    sizes[:, moved] = move_sizes(room, slope, rows.transport_norm, plan.price, plan.reach[chunk])
    sizes[act == UNTOUCHED] = 0.0
    return sizes


def move_totals(rows: Rows, support: BoxSupport, saddle: Saddle) -> FloatArray:
    """Mean over rows and plans of how far each feature is moved, (P,)."""
    total = np.zeros(rows.weights.shape[0])
    for plan in saddle.plans:
        for chunk in chunks(rows.count):
            total += plan.share * moves(rows, support, plan, chunk).sum(axis=0)
    return total / rows.count


def chunks(count: int) -> Iterator[slice]:
    """Slices of at most ``CHUNK`` rows."""
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))


def _room(
    rows: Rows, support: BoxSupport, moved: NDArray[np.bool_], chunk: slice | NDArray[np.intp], sides: FloatArray
) -> FloatArray:
    """Distance to the wall met when ``<w, x>`` falls (side +1) or rises (side -1)."""
    x = rows.features[chunk][:, moved]
    towards_low = (sides[:, None] * np.sign(rows.weights[moved])) > 0
    room = np.where(towards_low, x - support.low[moved], support.high[moved] - x)
    return np.maximum(room, 0.0)


@dataclass(frozen=True)
class _BoxData:
    rows: Rows
    support: BoxSupport
    moved: NDArray[np.bool_]

    def block(self, chunk: slice | NDArray[np.intp]) -> _Block:
        rows = self.rows
        labels, margins = rows.labels[chunk], rows.margins[chunk]
        room = _room(rows, self.support, self.moved, chunk, labels)
        flips = bool(np.isfinite(rows.label_flip_cost))
        if flips:
            room = np.concatenate([room, _room(rows, self.support, self.moved, chunk, -labels)])
        gains = make_gains(room, np.abs(rows.weights[self.moved]), rows.transport_norm)
        return _Block(1.0 - margins, 1.0 + margins if flips else margins[:0], gains, rows.label_flip_cost)

    def plans(self, prices: Sequence[float], shares: Sequence[float]) -> Iterator[Plan]:
        act = np.zeros((len(prices), self.rows.count), dtype=np.int8)
        reach = np.zeros((len(prices), self.rows.count))
        for chunk in chunks(self.rows.count):
            block = self.block(chunk)
            for k, price in enumerate(prices):
                answer = block.at(price)
                act[k, chunk], reach[k, chunk] = answer.act, answer.reach
        for k, price in enumerate(prices):
            yield Plan(price, shares[k], act[k], reach[k])


def _condense(data: _BoxData, top: Tangent) -> tuple[_Sum, Tangent, Tangent]:
    """Bracket of the price on all rows, with the rows that are linear on it folded into one tangent.

    A sample of the rows proposes the bracket; a pass over all rows checks it and widens it where it was wrong.
    """
    low, high = _proposal(data, top)
    while True:
        total, left, right = _fold(data, low, high)
        if left.slope >= 0 and low > 0:
            low, high = 0.0, low
        elif right.slope <= 0 and high < top.at:
            low, high = high, top.at
        else:
            return total, left, right if high < top.at else top


def _proposal(data: _BoxData, top: Tangent) -> tuple[float, float]:
    rows = data.rows
    sample = np.arange(0, rows.count, rows.count // CHUNK)
    blocks = [data.block(sample)]
    spent = blocks[0].at(_price(_Sum(blocks, sample.size, rows.radius), top.at)).spent
    doubt = 4.0 * float(spent.std()) / float(np.sqrt(sample.size)) + 1e-3 * rows.radius
    low = _price(_Sum(blocks, sample.size, rows.radius + doubt), top.at)
    high = top.at if doubt >= rows.radius else _price(_Sum(blocks, sample.size, rows.radius - doubt), top.at)
    narrowest = 1e-6 * top.at
    high = max(high, narrowest)
    return max(0.0, min(low, high - narrowest)), high


def _price(total: _Sum, highest: float) -> float:
    left, right = total(0.0), total(highest)
    if left.slope >= 0:
        return 0.0
    return highest if right.slope <= 0 else minimise_between(total, left, right, 1e-6 * abs(right.value)).at


def _fold(data: _BoxData, low: float, high: float) -> tuple[_Sum, Tangent, Tangent]:
    rows, kept = data.rows, []
    ends = {low: np.zeros(2), high: np.zeros(2)}
    folded = np.zeros(2)
    for chunk in chunks(rows.count):
        block = data.block(chunk)
        left, right = block.at(low), block.at(high)
        ends[low] += left.value.sum(), left.spent.sum()
        ends[high] += right.value.sum(), right.spent.sum()
        bent = left.spent != right.spent
        folded += left.value[~bent].sum(), left.spent[~bent].sum()
        if bent.any():
            kept.append(block.take(np.flatnonzero(bent)))
    total = _Sum(kept, rows.count, rows.radius, Tangent(low, float(folded[0]), -float(folded[1])))
    tangents = [
        Tangent(at, rows.radius * at + float(value) / rows.count, rows.radius - float(spent) / rows.count)
        for at, (value, spent) in ends.items()
    ]
    return total, tangents[0], tangents[1]
