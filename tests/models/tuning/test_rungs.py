"""How many candidates stay, and which folds a rung asks."""

from __future__ import annotations

import pytest

from models.tuning.rungs import rungs, stay


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
