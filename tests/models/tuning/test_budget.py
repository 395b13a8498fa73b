"""A budget is counted in whole rounds, and none is asked that it does not pay for."""

from __future__ import annotations

import pytest

from models.basics import ProblemError
from models.tuning.budget import Budget, OneTraining


@pytest.mark.parametrize(("trainings", "kept", "rounds"), [(1.5, 0, 7), (1.9, 0, 9), (1.99, 0, 9), (2.0, 3, 7)])
def test_a_part_of_a_round_is_none(trainings: float, kept: int, rounds: int) -> None:
    budget = Budget(OneTraining(5, 50.0), trainings, kept=OneTraining(kept, 0.0))
    assert budget.most_rounds == budget.rounds_left == rounds
    for _ in range(rounds):
        budget.spend(1.0)
    with pytest.raises(ProblemError, match="0 rounds and .* numbers are left"):
        budget.spend(1.0)


def test_a_round_may_take_all_numbers_that_are_left_and_no_more() -> None:
    budget = Budget(OneTraining(5, 50.0), 2.0, kept=OneTraining(0, 20.0))
    budget.spend(30.0)
    assert budget.numbers_left == 50.0
    with pytest.raises(ProblemError, match="beyond the budget"):
        budget.spend(50.5)
    budget.spend(50.0)
    assert (budget.numbers_left, budget.rounds) == (0.0, 2)
