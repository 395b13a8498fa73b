r"""Exact worst-case hinge risk when the features live in a box (MATH section 1, box support).

    r(w) = min_{0 <= lam} radius lam + mean_i max(0, 1 - m_i + kept_i(lam), 1 + m_i + flipped_i(lam) - kappa lam)

with the gains of ``models.box_gains``. At prices above ``||w||_*`` no feature is worth moving, so only prices in
``[0, ||w||_*]`` are searched here; the rest is the unbounded case. Source: DRFL Propositions 6.3 and 6.4 with their
multipliers eliminated.

A small site is sorted once. A large one is passed over in chunks: a sample of its rows proposes a narrow bracket of the
price, one pass checks it, and only the rows that bend inside it are kept sorted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.box_blocks import Block, make_block
from models.box_gains import move_sizes
from models.price_search import Answer, Asked, Total, search_price
from models.problem import BoxSupport, FloatArray
from models.saddle import FLIPPED, KEPT, UNTOUCHED, Plan, Rows, Saddle

CHUNK = 4096
"""Rows that are sorted at once: all of a small site, a cache-sized part of a large one."""

_ROUNDING = 8 * float(np.finfo(np.float64).eps)


def solve_box(rows: Rows, support: BoxSupport, floor: Saddle) -> Saddle:
    """Saddle point with a price in ``[0, ||w||_*]``, ``floor`` being the unbounded one, at ``||w||_*``, nothing moved.

    At that price ties between moving and staying are settled by ``floor`` (stay), not by rounding in the sorted walls.
    """
    data = _BoxData(rows, support, rows.weights != 0)
    stay = _stay(rows, floor)
    budget = rows.count * rows.radius
    if rows.count <= CHUNK:
        return _solve_sorted(data, stay, budget)
    saddle = _solve_by_chunks(data, stay, budget)
    return replace(saddle, moved=_move_totals(rows, support, saddle.plans))


def moves(rows: Rows, support: BoxSupport, plan: Plan, chunk: slice) -> FloatArray:
    """How far a plan moves each feature of some rows, (n, P), always in the harmful direction."""
    sizes = np.zeros_like(rows.features[chunk])
    if plan.reach is None:
        return sizes
    moved, act = rows.weights != 0, plan.act[chunk]
    room = _room(rows, support, moved, chunk, rows.labels[chunk] * act)
    sizes[:, moved] = move_sizes(room, np.abs(rows.weights[moved]), rows.transport_norm, plan.reach[chunk])
    sizes[act == UNTOUCHED] = 0.0
    return sizes


def _move_totals(rows: Rows, support: BoxSupport, plans: Sequence[Plan]) -> FloatArray:
    """Mean over rows and plans of how far each feature is moved, (P,)."""
    total = np.zeros(rows.weights.shape[0])
    for plan in plans:
        for chunk in _chunks(rows.count):
            total += plan.share * moves(rows, support, plan, chunk).sum(axis=0)
    return total / rows.count


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))


def _room(
    rows: Rows, support: BoxSupport, moved: NDArray[np.bool_], chunk: slice | NDArray[np.intp], sides: FloatArray
) -> FloatArray:
    """Distance to the wall met when ``<w, x>`` falls (side +1) or rises (side -1)."""
    x, low, high = rows.features[chunk], support.low, support.high
    if not moved.all():
        x, low, high = x[:, moved], low[moved], high[moved]
    towards_low = np.multiply.outer(sides, np.sign(rows.weights[moved])) > 0
    return np.maximum(np.where(towards_low, x - low, high - x), 0.0)


def _stay(rows: Rows, floor: Saddle) -> Asked:
    """What the rows answer at ``||w||_*`` when none is moved."""
    act = floor.plans[0].act
    flips = act == FLIPPED
    value = np.where(act == KEPT, 1.0 - rows.margins, 0.0)
    spent = np.zeros(rows.count)
    if flips.any():
        value[flips] = 1.0 + rows.margins[flips] - rows.label_flip_cost * floor.price
        spent[flips] = rows.label_flip_cost
    reach = np.full(rows.count, floor.price if rows.transport_norm == "l1" else 0.0)
    return Asked(floor.price, Answer(value, spent, act, reach))


@dataclass(frozen=True)
class _BoxData:
    rows: Rows
    support: BoxSupport
    moved: NDArray[np.bool_]

    def block(self, chunk: slice | NDArray[np.intp]) -> Block:
        rows = self.rows
        labels, margins = rows.labels[chunk], rows.margins[chunk]
        room = _room(rows, self.support, self.moved, chunk, labels)
        sides = (self.support.high - self.support.low)[self.moved]
        other = np.maximum(sides - room, 0.0) if math.isfinite(rows.label_flip_cost) else None
        return make_block(margins, room, other, np.abs(rows.weights[self.moved]), rows)

    def spread(self, totals: FloatArray) -> FloatArray:
        """Means (P,) over the rows from sums over the moved features."""
        means = np.zeros(self.moved.shape[0])
        means[self.moved] = totals / self.rows.count
        return means


def _solve_sorted(data: _BoxData, stay: Asked, budget: float) -> Saddle:
    rows, block = data.rows, data.block(slice(0, data.rows.count))
    free = Asked(0.0, block.at(0.0))
    if float(free.answer.spent.sum()) <= budget:
        moved = data.spread(block.moved(free.answer.act, free.answer.reach))
        return Saddle(
            float(free.answer.value.mean()), 0.0, (Plan(1.0, free.answer.act, free.answer.reach),), moved=moved
        )
    left, right, crossing, value = search_price(block.at, free, stay, budget, Total(), _tolerance(rows, stay))
    act = np.where(crossing.over, right.answer.act, left.answer.act)
    reach = np.where(crossing.over, right.answer.reach, left.answer.reach)
    tips, later_act, later_reach = crossing.tips, act.copy(), reach.copy()
    later_act[tips], later_reach[tips] = right.answer.act[tips], right.answer.reach[tips]
    plans = (Plan(crossing.share, act, reach), Plan(1.0 - crossing.share, later_act, later_reach))
    # The two plans differ in the row that tips, and in that alone.
    one, row = block.take(np.array([tips])), slice(tips, tips + 1)
    change = one.moved(later_act[row], later_reach[row]) - one.moved(act[row], reach[row])
    total = block.moved(act, reach) + (1.0 - crossing.share) * change
    return Saddle(value / rows.count, crossing.price, plans, moved=data.spread(total))


def _solve_by_chunks(data: _BoxData, stay: Asked, budget: float) -> Saddle:
    rows = data.rows
    low, high = _proposal(data, stay)
    while True:
        fold = _fold(data, stay, low, high)
        if fold.left_spends <= budget and low > 0:
            low, high = 0.0, low
        elif fold.right_spends > budget and high < stay.price:
            low, high = high, stay.price
        else:
            break
    act, reach = fold.everyone.act, fold.everyone.reach
    if fold.left_spends <= budget:
        return Saddle(float(fold.everyone.value.mean()), 0.0, (Plan(1.0, act, reach),))
    left, right, crossing, value = search_price(
        fold.ask, Asked(low, fold.left), Asked(high, fold.right), budget, fold.apart, _tolerance(rows, stay)
    )
    plans = []
    for share, over in crossing.sets():
        new_act, new_reach = act.copy(), reach.copy()
        new_act[fold.bent] = np.where(over, right.answer.act, left.answer.act)
        new_reach[fold.bent] = np.where(over, right.answer.reach, left.answer.reach)
        plans.append(Plan(share, new_act, new_reach))
    return Saddle(value / rows.count, crossing.price, tuple(plans))


def _tolerance(rows: Rows, stay: Asked) -> float:
    """Rounding of a sum over the rows of values of this size."""
    return _ROUNDING * float(rows.count + np.abs(rows.margins).sum() + stay.answer.value.sum())


def _proposal(data: _BoxData, stay: Asked) -> tuple[float, float]:
    """Bracket that a sample of the rows suggests: the prices at a little more and a little less than the radius."""
    rows = data.rows
    sample = np.arange(0, rows.count, rows.count // CHUNK)
    block = data.block(sample)
    free = Asked(0.0, block.at(0.0))
    end = Asked(stay.price, _taken(stay.answer, sample))
    spent = block.at(_price(block, free, end, rows.radius)).spent
    doubt = 4.0 * float(spent.std()) / float(np.sqrt(sample.size)) + 1e-3 * rows.radius
    low = _price(block, free, end, rows.radius + doubt)
    high = _price(block, free, end, max(rows.radius - doubt, 0.0))
    narrowest = 1e-6 * stay.price
    high = max(high, narrowest)
    return max(0.0, min(low, high - narrowest)), high


def _price(block: Block, free: Asked, end: Asked, radius: float) -> float:
    budget = radius * free.answer.spent.shape[0]
    if float(free.answer.spent.sum()) <= budget:
        return free.price
    if float(end.answer.spent.sum()) > budget:
        return end.price
    return search_price(block.at, free, end, budget, Total(), 1e-6 * float(free.answer.value.sum()))[2].price


@dataclass(frozen=True)
class _Fold:
    """All rows at the two ends of a bracket; the rows that bend inside it kept sorted, the others summed up."""

    everyone: Answer
    left_spends: float
    right_spends: float
    bent: NDArray[np.intp]
    blocks: Sequence[Block]
    left: Answer
    right: Answer
    apart: Total

    def ask(self, price: float) -> Answer:
        return _joined([block.at(price) for block in self.blocks])


def _fold(data: _BoxData, stay: Asked, low: float, high: float) -> _Fold:
    lefts, rights, bents, blocks = [], [], [], []
    for chunk in _chunks(data.rows.count):
        block = data.block(chunk)
        left = block.at(low)
        right = block.at(high) if high < stay.price else _taken(stay.answer, chunk)
        bent = np.flatnonzero(left.spent != right.spent)
        lefts.append(left)
        rights.append(_taken(right, bent))
        bents.append(bent + chunk.start)
        blocks.append(block.take(bent))
    everyone, right, bent = _joined(lefts), _joined(rights), np.concatenate(bents)
    straight = np.ones(data.rows.count, dtype=np.bool_)
    straight[bent] = False
    spent = float(everyone.spent[straight].sum())
    return _Fold(
        everyone=everyone,
        left_spends=float(everyone.spent.sum()),
        right_spends=spent + float(right.spent.sum()),
        bent=bent,
        blocks=blocks,
        left=_taken(everyone, bent),
        right=right,
        apart=Total(float(everyone.value[straight].sum()) + spent * low, spent),
    )


def _taken(answer: Answer, rows: slice | NDArray[np.intp]) -> Answer:
    return Answer(answer.value[rows], answer.spent[rows], answer.act[rows], answer.reach[rows])


def _joined(answers: Sequence[Answer]) -> Answer:
    return Answer(
        np.concatenate([answer.value for answer in answers]),
        np.concatenate([answer.spent for answer in answers]),
        np.concatenate([answer.act for answer in answers]),
        np.concatenate([answer.reach for answer in answers]),
    )
