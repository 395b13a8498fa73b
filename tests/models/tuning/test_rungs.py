"""How many candidates stay, and which folds a rung asks."""

from __future__ import annotations

import pytest

from models.tuning.candidates import Candidate
from models.tuning.rungs import Rung, race_numbers, rungs, stay


@pytest.mark.parametrize(
    ("count", "left"), [(1, 1), (2, 2), (3, 3), (4, 3), (9, 3), (10, 4), (12, 4), (13, 5), (48, 16), (49, 17)]
)
def test_a_third_stays_rounded_up_and_three_at_least(count: int, left: int) -> None:
    assert stay(count) == left


@pytest.mark.parametrize("folds", range(2, 11))
@pytest.mark.parametrize("candidates", [1, 9, 10, 60])
def test_every_fold_is_asked_once_in_order(candidates: int, folds: int) -> None:
    asked = [fold for rung in rungs(candidates, folds) for fold in rung.folds]
    assert asked == list(range(folds))


def test_the_first_rungs_have_two_folds_and_half_of_the_rest() -> None:
    """Rounded up, where candidates are many; few have one rung less."""
    for folds, ends in ((4, (2, 3)), (5, (2, 4)), (8, (2, 5)), (9, (2, 6)), (10, (2, 6))):
        assert tuple(rung.folds[-1] + 1 for rung in rungs(60, folds)) == (*ends, folds)
        assert tuple(rung.folds[-1] + 1 for rung in rungs(9, folds)) == (2, folds)


def test_a_race_is_counted_as_if_the_dearest_stayed() -> None:
    """Two heads; ten candidates with the lift of 7 features and one of 3, of which a third, four, stay for two folds.

    A cut of a lift and fold goes out as a point (2 x 8 or 2 x 4 numbers) and comes back as a slope, risk, height and
    share of the norm; a score is its weights and what is told of them.
    """
    candidates = [Candidate(1.0 + k, 1.0, lift=int(k > 0)) for k in range(11)]
    plan = (Rung((0,)), Rung((1, 2)))
    cuts = [2 * 2 * (size + 1) + 3 * 2 for size in (7, 3)]
    first = 10 * (2 * 8 + 5) + (2 * 4 + 5) + 4 * sum(cuts)
    second = 2 * (4 * (2 * 8 + 5) + 4 * sum(cuts))
    assert race_numbers(candidates, (3, 7), 2, plan, 5, cuts=4) == first + second
