"""A guard for answers over the rows without a fold: coefficients go to the vault's guard over all rows, 0 in the fold.

So two answers of one candidate over two folds are held against one another, and against all else that left, as answers
over the same rows are, by their sums: a difference that would isolate a row does not leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.methods.guard import AnswerT, Guard, Minorant, Near, Other
from models.methods.row_account import RowAccount, of_sum


def over_all(account: RowAccount, rows: NDArray[np.bool_]) -> RowAccount:
    """The account over all rows (N,) of means over those of ``rows``: of their sums, over N; 0 for the others."""
    return RowAccount(tuple(of_sum(each, rows, rows.shape[0]) for each in account.rows), account.whole)


class FoldGuard:
    """Chooses as another guard over all rows does; ``rows`` (N,) are those that the answer is over."""

    def __init__(self, guard: Guard, rows: NDArray[np.bool_]) -> None:
        self._guard, self._rows = guard, rows

    def choose(
        self, question: bytes, candidate: Callable[[int, np.random.Generator], AnswerT],
        vectors: Callable[[AnswerT], Sequence[FloatArray]],
    ) -> AnswerT:
        """The first candidate that may leave."""
        return self._guard.choose(question, candidate, lambda found: [self._spread(each) for each in vectors(found)])

    def choose_cut(self, question: bytes, near: Near, exact: Minorant, other: Other) -> Minorant:
        """The same of minorants of one risk."""
        whole = self._whole(exact)
        found = self._guard.choose_cut(
            question, near, whole, lambda number, random: self._whole(other(number, random))
        )
        if found is whole:
            return exact
        return found if found.rows is None else replace(found, rows=found.rows[self._rows] / self._rows.mean())

    def _whole(self, cut: Minorant) -> Minorant:
        return cut if cut.rows is None else replace(cut, rows=self._spread(cut.rows))

    def _spread(self, coefficients: FloatArray) -> FloatArray:
        return of_sum(coefficients, self._rows, self._rows.shape[0])
