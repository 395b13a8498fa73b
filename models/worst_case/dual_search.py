r"""The optimal price of transport from what each row answers at two prices.

    F(lam) = radius lam + (1/N) sum_i f_i(lam),     every f_i convex and decreasing

An answer at a price is a line below f_i: its value there and its slope, minus what row i spends. Between two prices at
which the rows together spend more and less than the radius, let every row go over from its line at the lower price to
its line at the higher one where the two cross. The price at which the total then spends the radius exactly is the next
to ask, and the two totals before and after the row that tips it, mixed so that the radius is spent exactly, are a
constant below F. Where no row has a third line in between, that constant is attained and the search is over; so a few
prices do for piecewise linear rows, and smooth ones converge like a secant method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, rounded
from models.worst_case.saddle_point import AdversaryAction

MAX_STEPS = 200  # of a bracket that at least every third step halves
_BISECTIONS = 5  # the bracket is a thirty-second then
_TIED = 1e-12  # share of the largest price below which two prices are one: some thousand roundings
_NOTHING = float(np.finfo(np.float64).tiny) ** 0.5  # divided by, it overflows no price


class Answer(NamedTuple):
    """Per row: ``value`` f_i at the multiplier, transport ``spent``, what was done (``act``), how far (``extent``)."""

    value: FloatArray
    spent: FloatArray
    act: NDArray[np.int8]
    extent: FloatArray

    def take(self, rows: slice | NDArray[np.intp]) -> Answer:
        """The answers of some rows."""
        return Answer(self.value[rows], self.spent[rows], self.act[rows], self.extent[rows])

    def weighed(self, counts: FloatArray | None) -> Answer:
        """The answers of rows that count so often, (n,); None: once."""
        return self if counts is None else self._replace(value=self.value * counts, spent=self.spent * counts)

    @staticmethod
    def joined(answers: Sequence[Answer]) -> Answer:
        """The answers of rows that were asked in parts."""
        return Answer(*(np.concatenate(parts) for parts in zip(*answers, strict=True)))

    def action(self, share: float = 1.0) -> AdversaryAction:
        """What the adversary does with probability ``share`` where this is the answer."""
        return AdversaryAction(share, self.act, self.extent)


@dataclass(frozen=True)
class Asked:
    """A price and the answers to it."""

    multiplier: float
    answer: Answer

    def at(self, multiplier: float) -> FloatArray:
        """The rows' lines at another price."""
        return np.asarray(self.answer.value - self.answer.spent * (multiplier - self.multiplier))


@dataclass(frozen=True)
class Total:
    """Rows that stand apart from the search: what they spend, and their value where their line meets price 0."""

    value: float = 0.0
    spent: float = 0.0


@dataclass(frozen=True)
class Crossing:
    """Where two sets of lines, mixed, spend the radius exactly.

    ``bound`` is the mixture's constant value (a sum over rows, not a mean). ``over`` (n,) says which rows have gone
    over to the right line before the row ``tips`` does; ``share`` is the weight of the set without it.
    """

    multiplier: float
    bound: float
    over: NDArray[np.bool_]
    tips: int
    share: float


@dataclass(frozen=True)
class Optimum:
    """Where a search ended: the last bracket, its crossing, and the value there, a sum over rows.

    The value is an upper bound of the minimum, the crossing's bound a lower one.
    """

    left: Asked
    right: Asked
    crossing: Crossing
    value: float

    @property
    def multiplier(self) -> float:
        """The optimal price."""
        return self.crossing.multiplier

    def actions(self) -> tuple[AdversaryAction, ...]:
        """What the rows do before and after the one that tips, mixed so that the radius is spent exactly."""
        crossing, left, right = self.crossing, self.left.answer, self.right.answer
        after = crossing.over.copy()
        after[crossing.tips] = True
        return tuple(
            AdversaryAction(share, np.where(over, right.act, left.act), np.where(over, right.extent, left.extent))
            for share, over in ((crossing.share, crossing.over), (1.0 - crossing.share, after))
        )


def search_multiplier(
    ask: Callable[[float], Answer], left: Asked, right: Asked, budget: float, apart: Total, tolerance: float
) -> Optimum:
    """Shrink the bracket until the value at its crossing is within ``tolerance`` of the bound.

    ``left`` spends more than ``budget`` (N times the radius) and ``right`` less.
    """
    slow = 0
    left, right = _narrowed(ask, left, right, budget, apart)
    crossing = _cross(left, right, budget, apart)
    for _ in range(MAX_STEPS):
        width = right.multiplier - left.multiplier
        multiplier = 0.5 * (left.multiplier + right.multiplier) if slow >= 2 else crossing.multiplier
        asked = Asked(multiplier, ask(multiplier))
        value = budget * multiplier + apart.value - apart.spent * multiplier + float(asked.answer.value.sum())
        inside = left.multiplier < multiplier < right.multiplier
        if multiplier == crossing.multiplier and (value - crossing.bound <= tolerance or not inside):
            return Optimum(left, right, _cross(left, right, budget, apart, _TIED), value)
        if not inside:
            break
        if apart.spent + float(asked.answer.spent.sum()) > budget:
            left = asked
        else:
            right = asked
        slow = 0 if slow >= 2 or right.multiplier - left.multiplier <= 0.5 * width else slow + 1
        crossing = _cross(left, right, budget, apart)
    multiplier = crossing.multiplier
    rows = float(ask(multiplier).value.sum())
    value = budget * multiplier + apart.value - apart.spent * multiplier + rows
    return Optimum(left, right, _cross(left, right, budget, apart, _TIED), value)


def _narrowed(
    ask: Callable[[float], Answer], left: Asked, right: Asked, budget: float, apart: Total
) -> tuple[Asked, Asked]:
    """A few bisections, which are cheaper than crossings and as good while the bracket is wide."""
    for _ in range(_BISECTIONS):
        multiplier = 0.5 * (left.multiplier + right.multiplier)
        if not left.multiplier < multiplier < right.multiplier:
            break
        asked = Asked(multiplier, ask(multiplier))
        if apart.spent + float(asked.answer.spent.sum()) > budget:
            left = asked
        else:
            right = asked
    return left, right


def _cross(left: Asked, right: Asked, budget: float, apart: Total, tied: float = 0.0) -> Crossing:
    """Crossing of two sets of lines; rows whose own crossings differ by less than the share ``tied`` go in their order.

    Whoever goes first, what is mixed stays below F; but who does must not hang on the last digits of the rows.
    """
    (value, more, _, _), (later, less, _, _) = left.answer, right.answer
    saved = np.maximum(more - less, 0.0)
    # A row that saves nothing never goes over; one that saves next to nothing may do so anywhere in the bracket.
    ahead = value - later + more * left.multiplier - less * right.multiplier
    turn = np.divide(ahead, saved, out=np.full_like(saved, right.multiplier), where=saved > _NOTHING)
    np.minimum(np.maximum(turn, left.multiplier, out=turn), right.multiplier, out=turn)
    order = rounded(turn, tied).argsort(kind="stable")
    spent = apart.spent + float(more.sum()) - saved[order].cumsum()
    last = min(int(np.count_nonzero(spent > budget)), spent.shape[0] - 1)
    over = np.zeros(turn.shape[0], dtype=np.bool_)
    over[order[:last]] = True
    tips = int(order[last])
    multiplier = float(turn[tips])
    lines, later_lines = left.at(multiplier), right.at(multiplier)
    before = float(np.where(over, later_lines, lines).sum())
    spent_after, drop = float(spent[last]), float(saved[tips])
    share = min(max((budget - spent_after) / drop, 0.0), 1.0) if drop > 0 else 1.0
    tipped = (1.0 - share) * float(later_lines[tips] - lines[tips])
    bound = budget * multiplier + apart.value - apart.spent * multiplier + before + tipped
    return Crossing(multiplier, bound, over, tips, share)
