"""Coefficients of an answer over the rows without a fold, as a guard over all rows has them and gives them back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from models.methods.guard import AnswerT, Minorant, Near, Other
from models.methods.row_account import RowAccount
from models.tuning.fold_guard import FoldGuard, over_all

KEPT = np.array([True, False, True, True, False])
NEAR = Near(np.zeros(2), 0.0)


class Noting:
    """A guard that takes the second candidate, and notes the coefficients that it was given."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def choose(
        self, question: bytes, candidate: Callable[[int, np.random.Generator], AnswerT],
        vectors: Callable[[AnswerT], Sequence[np.ndarray]],
    ) -> AnswerT:
        found = candidate(1, np.random.default_rng(0))
        self.seen += vectors(found)
        return found

    def choose_cut(self, question: bytes, near: Near, exact: Minorant, other: Other) -> Minorant:
        found = other(1, np.random.default_rng(0))
        self.seen += [each for each in (exact.rows, found.rows) if each is not None]
        return found


def cut(rows: Any) -> Minorant:
    return Minorant(0.0, np.zeros(2), 0.0, None, None if rows is None else np.array(rows))


def test_a_mean_over_three_of_five_rows_counts_as_their_sum_by_five() -> None:
    """So 3 times the mean without the fold is told apart from 5 times that of all rows by the fold alone."""
    mean = np.array([1.0, -1.0, 2.0]) / 3
    (spread,) = over_all(RowAccount((mean,)), KEPT).rows
    assert np.allclose(spread, [0.2, 0.0, -0.2, 0.4, 0.0])
    assert over_all(RowAccount((mean,), whole=False), KEPT).whole is False


def test_what_a_guard_over_all_rows_chooses_comes_back_over_the_kept_ones() -> None:
    guard, mean, another = Noting(), np.array([1.0, -1.0, 2.0]) / 3, np.array([0.0, 1.0, 1.0]) / 3
    ours = FoldGuard(guard, KEPT)
    found = ours.choose_cut(b"q", NEAR, cut(mean), lambda number, random: cut(another))
    assert np.allclose(found.rows, another)
    assert np.allclose(guard.seen, [[0.2, 0, -0.2, 0.4, 0], [0, 0, 0.2, 0.2, 0]])
    assert ours.choose(b"q", lambda number, random: number, lambda found: [mean]) == 1
    assert np.allclose(guard.seen[-1], [0.2, 0, -0.2, 0.4, 0])
    unknown = ours.choose_cut(b"q", NEAR, cut(mean), lambda number, random: cut(None))
    assert unknown.rows is None
