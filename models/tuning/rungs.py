"""Rungs of the race of the candidates: what is asked in an exchange, how many stay, and what a race costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from models.basics import FloatArray
from models.tuning.candidates import Candidate
from models.tuning.folds import check_n_folds

FINALISTS = 3
"""As many are scored on every fold."""
ENOUGH_CUTS = 12
"""For one lift and fold: shared by all candidates of the lift, they bring those that matter to the coarse gap."""
_WITHOUT_RACE = 3  # folds: two of three say nearly what all three do
_FIRST_FOLDS = 2  # by which most candidates leave
_SHARE = 3  # one in so many stays after a rung


@dataclass(frozen=True)
class Asked:
    """One part of an exchange: weights (K, D) of a candidate with a fold held out; to be cut there, or scored.

    ``penalty``: of a local step from these weights, which are zero then and not told (``models.tuning.starts``).
    ``squares``: the cut is of the mean square (``models.tuning.least_squares``).
    """

    candidate: Candidate
    fold: int
    weights: FloatArray
    penalty: float | None = None
    squares: bool = False

    @property
    def sent(self) -> int:
        """Numbers that it sends to a site."""
        return self.weights.size if self.penalty is None else 0


@dataclass(frozen=True)
class Exchange:
    """What all sites are asked at once: cuts on the rows without the folds, or (``scored``) scores on the folds.

    ``pooled``: a candidate's counts over all its folds are told as one, with the first of its parts.
    """

    asked: tuple[Asked, ...]
    scored: bool
    pooled: bool = False

    @property
    def told(self) -> tuple[int, ...]:
        """Places of the parts that have an answer of their own."""
        if not self.pooled:
            return tuple(range(len(self.asked)))
        first: dict[Candidate, int] = {}
        for place, part in enumerate(self.asked):
            first.setdefault(part.candidate, place)
        return tuple(first.values())

    def together(self, place: int) -> tuple[Asked, ...]:
        """Parts whose counts the answer at a place holds."""
        part = self.asked[place]
        return tuple(each for each in self.asked if each.candidate == part.candidate) if self.pooled else (part,)


@dataclass(frozen=True)
class Rung:
    """Folds that the live candidates are trained without in turn, side by side."""

    folds: tuple[int, ...]


def rungs(n_candidates: int, n_folds: int, first: int = _FIRST_FOLDS) -> tuple[Rung, ...]:
    """``first`` folds, then half of the rest, then the rest; two rungs at most where few candidates are there.

    One rung of three folds or two, unless ``first`` is 1.
    """
    check_n_folds(n_folds)
    if n_folds <= _WITHOUT_RACE and first > 1:
        return (Rung(tuple(range(n_folds))),)
    first = min(first, n_folds - 1)
    second = first + math.ceil((n_folds - first) / 2)
    ends = (first, n_folds) if n_candidates <= _SHARE * FINALISTS else (first, second, n_folds)
    return tuple(Rung(tuple(range(low, high))) for low, high in pairwise((0, *ends)) if low < high)


def race_numbers(
    candidates: Sequence[Candidate], sizes: Sequence[int], heads: int, plan: Sequence[Rung], score_numbers: int,
    cuts: int = ENOUGH_CUTS,
) -> float:
    """Numbers of a race with so many cuts for every lift and fold, were the largest lifts to stay, and its scores."""
    dear = sorted((heads * (sizes[each.lift] + 1) + score_numbers for each in candidates), reverse=True)
    used = {each.lift for each in candidates}
    lifts = sorted((2 * heads * (sizes[lift] + 1) + 3 * heads for lift in used), reverse=True)
    total, count = 0.0, len(dear)
    for rung in plan:
        total += len(rung.folds) * (sum(dear[:count]) + cuts * sum(lifts[:count]))
        count = stay(count)
    return total


def stay(count: int) -> int:
    """How many of so many candidates stay after a rung: a third, three at least."""
    return max(min(FINALISTS, count), math.ceil(count / _SHARE))
