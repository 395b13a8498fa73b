"""What an answer says of single rows: the coefficients with which the rows enter each vector of it.

A slope is a sum over the rows, ``slope = c @ features`` plus what is known without them, so whoever has several slopes
has all linear combinations of their c. A site that knows its own c can tell what such combinations isolate before it
answers (``services.site_agent.vault.exposure``). Row-level: an account never leaves the vault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from models.basics import Arrays, FloatArray
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
        return RowAccount((*self.rows, rows), self.whole and whole)

    def partial(self) -> RowAccount:
        """The same account of an answer that has more in it."""
        return RowAccount(self.rows, False)


@dataclass(frozen=True)
class Accounted:
    """An answer and its account."""

    arrays: dict[str, FloatArray]
    account: RowAccount = field(default=RowAccount())


@runtime_checkable
class AccountedHalf(Protocol):
    """A site half that can account for its answers; ``answer`` gives the same arrays."""

    def accounted(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> Accounted:
        """The answer with its account, from one computation."""
        ...


def accounted_answer(
    half: SiteHalf, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]
) -> Accounted:
    """Answer of any half with its account: an empty one that is not whole where the half gives none."""
    if isinstance(half, AccountedHalf):
        return half.accounted(problem, message, parameters)
    return Accounted(half.answer(problem, message, parameters), RowAccount((), False))


def joined(accounts: Sequence[RowAccount]) -> RowAccount:
    """The account of several heads on the same rows."""
    rows = tuple(each for account in accounts for each in account.rows)
    return RowAccount(rows, all(account.whole for account in accounts))
