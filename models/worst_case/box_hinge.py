r"""Exact worst-case hinge risk when the features live in a box (MATH section 1, box support).

    r(w) = min_{0 <= lam} radius lam + mean_i max(0, 1 - m_i + kept_i(lam), 1 + m_i + flipped_i(lam) - kappa lam)

with the gains of ``box_transport``. At multipliers above ``||w||_*`` no feature is worth moving, so only prices in
``[0, ||w||_*]`` are searched here; the rest is the unbounded case. Source: DRFL Propositions 6.3 and 6.4 with their
multipliers eliminated.

A small site is sorted once. A large one is passed over in chunks: a sample of its rows proposes a narrow bracket of the
price, one pass checks it, and only the rows that bend inside it are kept sorted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.geometry.norms import vector_norm
from models.geometry.supports import BoxSupport
from models.worst_case.box_blocks import Block, make_block
from models.worst_case.box_transport import both_ways, move_sizes
from models.worst_case.dual_search import Answer, Asked, Total, search_multiplier
from models.worst_case.saddle_point import FLIPPED, KEPT, UNTOUCHED, AdversaryAction, Rows, Saddle

CHUNK = 4096
"""Rows that are sorted at once: all of a small site, a cache-sized part of a large one."""

_ROUNDING = 8 * float(np.finfo(np.float64).eps)  # share of the terms' sizes that a sum may be off by


def solve_box(rows: Rows, support: BoxSupport, floor: Saddle) -> Saddle:
    """Saddle point with a price in ``[0, ||w||_*]``, ``floor`` being the unbounded one, at ``||w||_*``, nothing moved.

    At that price ties between moving and staying are settled by ``floor`` (stay), not by rounding in the sorted walls.
    """
    data = _BoxData(rows, support, rows.weights != 0)
    unmoved = _unmoved(rows, floor)
    budget = rows.count * rows.radius
    return _solve_sorted(data, unmoved, budget) if rows.count <= CHUNK else _solve_by_chunks(data, unmoved, budget)


def moves(rows: Rows, support: BoxSupport, action: AdversaryAction, chunk: slice | NDArray[np.intp]) -> FloatArray:
    """How far a plan moves each feature of some rows, (n, P), always in the harmful direction."""
    sizes = np.zeros_like(rows.features[chunk])
    if action.extent is None:
        return sizes
    moved, act = rows.weights != 0, action.act[chunk]
    clearance = _clearance(rows, support, moved, chunk, rows.labels[chunk] * act)
    sizes[:, moved] = move_sizes(clearance, np.abs(rows.weights[moved]), rows.transport_norm, action.extent[chunk])
    sizes[act == UNTOUCHED] = 0.0
    return sizes


def mean_moves(rows: Rows, support: BoxSupport, saddle: Saddle) -> tuple[FloatArray, FloatArray]:
    """How far each feature is moved at weights above 0, and below 0, by what one budget pays for; means, (P,) each.

    A plan fixes how far, the sign of the weight fixes the side. Means are over rows and plans.
    """
    first, *others = saddle.actions
    total = np.zeros((2, rows.weights.shape[0]))
    for chunk in _chunks(rows.count):
        total += _moved(rows, support, first, chunk, saddle.leftover)
    for action in others:
        # Plans of one saddle point differ in few rows.
        changed = np.flatnonzero((action.act != first.act) | (action.extents != first.extents))
        for part in np.split(changed, range(CHUNK, changed.size, CHUNK)):
            change = _moved(rows, support, action, part, saddle.leftover)
            total += action.share * (change - _moved(rows, support, first, part, saddle.leftover))
    return total[0] / rows.count, total[1] / rows.count


def _moved(
    rows: Rows, support: BoxSupport, action: AdversaryAction, chunk: slice | NDArray[np.intp], leftover: float
) -> FloatArray:
    """Sums (2, P) over some rows of how far a plan moves them at weights above 0 and below 0."""
    act, everywhere = action.act[chunk], np.ones(rows.weights.shape[0])
    if action.extent is None:
        # Nothing is worth moving at the weights themselves: what is left of the radius is for all features alike.
        far = everywhere[None] * (max(leftover, 0.0) / float(vector_norm(everywhere, rows.transport_norm)))
    elif rows.transport_norm == "linf":
        far = action.extent[chunk][:, None]
    else:
        far = moves(rows, support, action, chunk)
    counts = (act != UNTOUCHED) * (1.0 if rows.row_weights is None else rows.row_weights[chunk])
    return both_ways(rows.features[chunk], support, rows.labels[chunk] * act, far, counts)


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))


def _clearance(
    rows: Rows, support: BoxSupport, moved: NDArray[np.bool_], chunk: slice | NDArray[np.intp], sides: FloatArray
) -> FloatArray:
    """Distance to the wall met when ``<w, x>`` falls (side +1) or rises (side -1)."""
    x, low, high = rows.features[chunk], support.low, support.high
    if not moved.all():
        x, low, high = x[:, moved], low[moved], high[moved]
    towards_low = np.multiply.outer(sides, np.sign(rows.weights[moved])) > 0
    return np.maximum(np.where(towards_low, x - low, high - x), 0.0)


def _unmoved(rows: Rows, floor: Saddle) -> Asked:
    """What the rows answer at ``||w||_*`` when none is moved."""
    act = floor.actions[0].act
    flips = act == FLIPPED
    value = np.where(act == KEPT, 1.0 - rows.margins, 0.0)
    spent = np.zeros(rows.count)
    if flips.any():
        value[flips] = 1.0 + rows.margins[flips] - rows.label_flip_cost * floor.multiplier
        spent[flips] = rows.label_flip_cost
    extent = np.full(rows.count, floor.multiplier if rows.transport_norm == "l1" else 0.0)
    return Asked(floor.multiplier, Answer(value, spent, act, extent).weighed(rows.row_weights))


@dataclass(frozen=True)
class _BoxData:
    rows: Rows
    support: BoxSupport
    moved: NDArray[np.bool_]

    def block(self, chunk: slice | NDArray[np.intp]) -> Block:
        rows = self.rows
        labels, margins = rows.labels[chunk], rows.margins[chunk]
        clearance = _clearance(rows, self.support, self.moved, chunk, labels)
        sides = (self.support.high - self.support.low)[self.moved]
        other = np.maximum(sides - clearance, 0.0) if math.isfinite(rows.label_flip_cost) else None
        counts = None if rows.row_weights is None else rows.row_weights[chunk]
        return make_block(margins, clearance, other, np.abs(rows.weights[self.moved]), rows, counts)


def _solve_sorted(data: _BoxData, unmoved: Asked, budget: float) -> Saddle:
    rows, block = data.rows, data.block(slice(0, data.rows.count))
    free = Asked(0.0, block.at(0.0))
    if float(free.answer.spent.sum()) <= budget:
        return Saddle(float(free.answer.value.mean()), 0.0, (free.answer.action(),))
    found = search_multiplier(block.at, free, unmoved, budget, Total(), _tolerance(rows, unmoved))
    return Saddle(found.value / rows.count, found.multiplier, found.actions())


def _solve_by_chunks(data: _BoxData, unmoved: Asked, budget: float) -> Saddle:
    rows = data.rows
    low, high = _proposal(data, unmoved)
    while True:
        fold = _fold(data, unmoved, low, high)
        if fold.left_spends <= budget and low > 0:
            low, high = 0.0, low
        elif fold.right_spends > budget and high < unmoved.multiplier:
            low, high = high, unmoved.multiplier
        else:
            break
    everyone = fold.everyone
    if fold.left_spends <= budget:
        return Saddle(float(everyone.value.mean()), 0.0, (everyone.action(),))
    found = search_multiplier(
        fold.ask, Asked(low, fold.left), Asked(high, fold.right), budget, fold.apart, _tolerance(rows, unmoved)
    )
    actions = []
    for bent in found.actions():
        act, extent = everyone.act.copy(), everyone.extent.copy()
        act[fold.bent], extent[fold.bent] = bent.act, bent.extents
        actions.append(AdversaryAction(bent.share, act, extent))
    return Saddle(found.value / rows.count, found.multiplier, tuple(actions))


def _tolerance(rows: Rows, unmoved: Asked) -> float:
    """Rounding of a sum over the rows of values of this size."""
    return _ROUNDING * float(rows.count + np.abs(rows.margins).sum() + unmoved.answer.value.sum())


def _proposal(data: _BoxData, unmoved: Asked) -> tuple[float, float]:
    """Bracket that a sample of the rows suggests: the prices at a little more and a little less than the radius."""
    rows = data.rows
    sample = np.arange(0, rows.count, rows.count // CHUNK)
    block = data.block(sample)
    free = Asked(0.0, block.at(0.0))
    end = Asked(unmoved.multiplier, unmoved.answer.take(sample))
    spent = block.at(_price(block, free, end, rows.radius)).spent
    doubt = 4.0 * float(spent.std()) / float(np.sqrt(sample.size)) + 1e-3 * rows.radius
    low = _price(block, free, end, rows.radius + doubt)
    high = _price(block, free, end, max(rows.radius - doubt, 0.0))
    narrowest = 1e-6 * unmoved.multiplier
    high = max(high, narrowest)
    return max(0.0, min(low, high - narrowest)), high


def _price(block: Block, free: Asked, end: Asked, radius: float) -> float:
    budget = radius * free.answer.spent.shape[0]
    if float(free.answer.spent.sum()) <= budget:
        return free.multiplier
    if float(end.answer.spent.sum()) > budget:
        return end.multiplier
    return search_multiplier(block.at, free, end, budget, Total(), 1e-6 * float(free.answer.value.sum())).multiplier


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

    def ask(self, multiplier: float) -> Answer:
        return Answer.joined([block.at(multiplier) for block in self.blocks])


def _fold(data: _BoxData, unmoved: Asked, low: float, high: float) -> _Fold:
    lefts, rights, bents, blocks = [], [], [], []
    for chunk in _chunks(data.rows.count):
        block = data.block(chunk)
        left = block.at(low)
        right = block.at(high) if high < unmoved.multiplier else unmoved.answer.take(chunk)
        bent = np.flatnonzero(left.spent != right.spent)
        lefts.append(left)
        rights.append(right.take(bent))
        bents.append(bent + chunk.start)
        blocks.append(block.take(bent))
    everyone, right, bent = Answer.joined(lefts), Answer.joined(rights), np.concatenate(bents)
    straight = np.ones(data.rows.count, dtype=np.bool_)
    straight[bent] = False
    spent = float(everyone.spent[straight].sum())
    return _Fold(
        everyone=everyone,
        left_spends=float(everyone.spent.sum()),
        right_spends=spent + float(right.spent.sum()),
        bent=bent,
        blocks=blocks,
        left=everyone.take(bent),
        right=right,
        apart=Total(float(everyone.value[straight].sum()) + spent * low, spent),
    )
