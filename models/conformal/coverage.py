r"""Which coverage a threshold is good for, from counts of groups of rows, over mixtures of the groups.

Group g (a plant, or a cohort of which only the sum is known) counted ``N_g(t)`` of its ``n_g`` held-out scores at or
below t. Its *held* share is

    h_g(t) = N_g(t) / (n_g + m_g),     m_g plants in the group (1 for a plant).

**Theorem** (finite samples). Let every plant's held-out rows and a new row of it be exchangeable, and let t* be the
least threshold of the grid with ``min_{q in Q} sum_g q_g h_g(t*) >= 1 - alpha``. Then the score of a new row drawn from
the mixture q is at or below t* with probability ``1 - alpha`` at least, for every q in Q, over the draw of the held-out
rows and the new one. For one plant this is the known rank ``ceil((n + 1)(1 - alpha))``, rounded up to the grid.
*Proof.* Give every plant one more row of its own and let ``M_g >= N_g`` count with it. The least threshold t' with
``min_q sum_g q_g M_g(t') / (n_g + 1) >= 1 - alpha`` is at or below t* and symmetric in each plant's rows, so given
their values the new one of plant g is at or below t' with probability ``M_g(t') / (n_g + 1)``; average over q.
Inside a cohort of m plants the same holds for the mixture in which plant i has the share ``(n_i + 1) / (n + m)``, for
``sum_i (n_i + 1) / (n + m) * N_i / (n_i + 1) = N / (n + m)``: by held-out rows, and for no other mixture of its plants.
It is a statement about all measurements together, not about one of them, nor about one kind of them.

**Shift.** If the new row's distribution lies within rho of the mixture in total variation, it has an event of
probability p with ``p - rho`` at least: ask for ``1 - alpha + rho`` (robust validation by f-divergence balls: Cauchois,
Gupta, Ali and Duchi 2024, with total variation as the divergence; mixtures of federated groups: Lu, Yu, Karimireddy,
Jordan and Raskar 2023).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError
from models.site_ambiguity.ball import MixtureBall, worst_mixture

_ROUNDING = 1e-12
"""A share that ought to be the asked one may be smaller by this much."""


@dataclass(frozen=True)
class Counted:
    """Counts (T,) of a group's n held-out scores at or below each threshold; the group has ``plants`` plants."""

    counts: FloatArray
    n: int
    plants: int = 1

    def __post_init__(self) -> None:
        """Refuse what no scores give."""
        counts = self.counts
        whole = np.array_equal(counts, np.round(counts))
        if self.n < 0 or not whole or (np.diff(counts, prepend=0.0) < 0).any() or (counts > self.n).any():
            raise ProblemError(f"counts must be whole, never fall, and lie between 0 and the {self.n} rows")

    @property
    def held(self) -> FloatArray:
        """Share ``N / (n + plants)`` (T,) of each threshold."""
        return self.counts / (self.n + self.plants)

    @property
    def beyond(self) -> FloatArray:
        """The same of the scores above each threshold, (T,)."""
        return (self.n - self.counts) / (self.n + self.plants)


def held_by_all(shares: FloatArray) -> FloatArray:
    """Least share (T,) of any of the groups' shares (G, T): good for every group, so for every mixture of them."""
    return np.asarray(shares.min(axis=0))


def held_by_mixtures(shares: FloatArray, centre: FloatArray, ball: MixtureBall) -> FloatArray:
    """Least share (T,) over the mixtures of the ball around ``centre`` (G,), from the groups' shares (G, T)."""
    return np.array([-worst_mixture(-each, centre, ball).value for each in shares.T])


def asked_level(coverage: float, shift: float = 0.0) -> float:
    """Level ``coverage + shift`` that the held share must reach; ``ProblemError`` where it is none below 1."""
    if not 0.0 < coverage < 1.0:
        raise ProblemError(f"coverage must lie between 0 and 1, both excluded, got {coverage:g}")
    if not 0.0 <= shift < 1.0:
        raise ProblemError(f"a shift in total variation must be at or above 0 and below 1, got {shift:g}")
    if coverage + shift >= 1.0:
        raise ProblemError(
            f"coverage {coverage:g} under a shift of {shift:g} in total variation needs coverage {coverage + shift:g} "
            f"without it, which must be below 1: ask for less than {1.0 - shift:g}"
        )
    return coverage + shift


def least_threshold(held: FloatArray, level: float) -> int | None:
    """Index of the first threshold whose held share (T,) reaches the level; None: none does, everything is held."""
    enough = held >= level - _ROUNDING
    return int(np.argmax(enough)) if enough.any() else None


def rows_needed(level: float) -> int:
    """Held-out rows that a plant needs at least: the least n with ``n / (n + 1) >= level``."""
    return max(1, math.ceil(level / (1.0 - level) - 1e-9))


def tail_level(level: float) -> float:
    """Level of each end of an interval whose two tails have the same share: ``1 - (1 - level) / 2``."""
    return 1.0 - (1.0 - level) / 2.0


def stacked(groups: Sequence[FloatArray]) -> FloatArray:
    """Shares of groups as one array (G, T); ``ProblemError`` without a group."""
    if not groups:
        raise ProblemError("no group has counted its held-out rows")
    return np.stack(groups)
