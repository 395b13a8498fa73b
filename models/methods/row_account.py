"""What an answer says of single rows: the coefficients with which the rows enter each vector of it.

A slope is a sum over the rows, ``slope = c @ features`` plus what is known without them, so whoever has several slopes
has all linear combinations of their c. A site that knows its own c can tell what such combinations isolate before it
answers (``services.site_agent.vault.isolation.exposure``). Row-level: an account never leaves the vault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.methods.guard import Guard
from models.methods.protocol import SiteHalf
from models.problem import SiteProblem


@dataclass(frozen=True)
class RowAccount:
    """Coefficients (N,) of the rows, one array for each vector of an answer that is a sum over them.

    ``whole``: the answer's vectors say nothing of the rows beyond these; else some have another form (steps of local
    training, what moves inside a box add), and the coefficients are what is known.
    """

    rows: tuple[FloatArray, ...] = ()
    whole: bool = True

    def with_vector(self, rows: FloatArray | None, slope: FloatArray, n_rows: int, *, whole: bool = True) -> RowAccount:
        """With one more vector ``slope``; where its ``rows`` are not known it is zero, or the account is not whole."""
        if rows is None and not slope.any():
            rows = np.zeros(n_rows)
        if rows is None:
            return RowAccount(self.rows, False)
        return RowAccount((*self.rows, *row_vectors(rows)), self.whole and whole)

    def partial(self) -> RowAccount:
        """The same account of an answer that has more in it."""
        return RowAccount(self.rows, False)


def row_vectors(rows: FloatArray | None) -> list[FloatArray]:
    """Coefficients (N,) by vector, of one vector (N,) or of several (C, N); none where they are not known."""
    if rows is None:
        return []
    return [rows] if rows.ndim == 1 else list(rows)


def of_sum(coefficients: FloatArray, rows: NDArray[np.bool_] | NDArray[np.intp], n_rows: int) -> FloatArray:
    """Coefficients (N,) of a sum over some rows divided by N, from those (n,) of the mean over them; 0 for the others.

    Who asks knows n, so n times one mean less N times another is a difference as any other: means over unlike rows are
    held to one another by their sums.
    """
    found = np.zeros(n_rows)
    found[rows] = coefficients * (coefficients.shape[0] / n_rows)
    return found


@dataclass(frozen=True)
class Accounted:
    """An answer and its account."""

    arrays: dict[str, FloatArray]
    account: RowAccount = field(default=RowAccount())


@runtime_checkable
class AccountedHalf(Protocol):
    """A site half that can account for its answers; without a guard ``answer`` gives the same arrays."""

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """The answer with its account, from one computation; what would isolate a row as the guard chooses."""
        ...


@runtime_checkable
class RemembersAnswers(Protocol):
    """A site half that does better with a memory of its own answers in the run; without it the run goes on too."""

    def answer_remembering(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays,
        guard: Guard | None = None,
    ) -> tuple[Accounted, dict[str, FloatArray]]:
        """Answer with its account, and the memory after it; ``memory`` {} at the start of a run and after a restart.

        What is remembered of an answer is what leaves, whichever the guard chose.
        """
        ...


def accounted_answer(
    half: SiteHalf, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
) -> Accounted:
    """Answer of any half with its account: an empty one that is not whole where the half gives none."""
    if isinstance(half, AccountedHalf):
        return half.accounted(problem, message, parameters, guard)
    return Accounted(half.answer(problem, message, parameters), RowAccount((), False))


def accounted_remembering(
    half: SiteHalf, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays,
    guard: Guard | None = None,
) -> tuple[Accounted, dict[str, FloatArray]]:
    """Accounted answer from a memory, and the memory after it: {} where the half has none."""
    if isinstance(half, RemembersAnswers):
        return half.answer_remembering(problem, message, parameters, memory, guard)
    return accounted_answer(half, problem, message, parameters, guard), {}


def joined(accounts: Sequence[RowAccount]) -> RowAccount:
    """The account of several heads on the same rows."""
    rows = tuple(each for account in accounts for each in account.rows)
    return RowAccount(rows, all(account.whole for account in accounts))
