"""Questions of squares as a task has them."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from models.tuning.candidates import Candidate
from models.tuning.rungs import Asked, Exchange
from services.coordinator.beginning.tuning import PlanTuning
from tests.services.coordinator.beginning.test_tuning import GRID
from tests.services.coordinator.fake_ports import RIG, FakeWorks


@pytest.mark.parametrize("squares", [True, False])
def test_a_question_says_whether_it_is_of_squares_and_is_answered_as_a_cut(works: FakeWorks, squares: bool) -> None:
    run = asyncio.run(works.coordinator().join(works.run(tuning=GRID)))
    part = Asked(Candidate(10.0, 4.0), 1, np.array([[0.2, 0.3, 0.1]]), squares=squares)
    question = PlanTuning(run, RIG, []).question(Exchange((part,), scored=False), 1)
    (asked,) = question.task.parts
    assert asked.squares is squares and (asked.radius, asked.label_flip_cost, asked.fold) == (10.0, 4.0, 1)
    assert list(question.arrays) == ["point_0"] and set(question.shapes) == {
        "risk_0", "cut_height_0", "slope_0", "norm_weight_0"
    }
