"""All heads of a lift are no nearer than the one that is farthest, and each is scored where most is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray
from models.tuning.candidates import Candidate
from models.tuning.head_pools import HeadPools
from models.tuning.terms import Step

ONE = Candidate(1.0, 1.0)


@dataclass
class Known:
    """A head whose bounds are so far apart: its point is 1, the best known one 2."""

    gap: float

    def step(self, candidate: Candidate) -> Step:
        return Step(np.full(2, 1.0), np.full(2, 2.0), self.gap)


def pools(gaps: list[float], *, target: bool) -> HeadPools:
    known: list[Any] = [Known(gap) for gap in gaps]
    return HeadPools(known, target)


@pytest.mark.parametrize("gaps", [[0.01, 0.7, 0.2], [0.7, 0.01, 0.2], [0.2, 0.01, 0.7]])
def test_the_gap_is_that_of_the_farthest_head(gaps: list[float]) -> None:
    for target in (True, False):
        found = pools(gaps, target=target)
        assert found.step(ONE).gap == 0.7 and found.scored(ONE)[1] == 0.7


@pytest.mark.parametrize(("target", "wanted"), [(False, [2.0, 1.0, 2.0]), (True, [2.0, 2.0, 2.0])])
def test_a_head_that_is_far_is_scored_where_its_model_points_but_a_target_where_it_is_best(
    target: bool, wanted: list[float]
) -> None:
    points: FloatArray = pools([0.01, 0.7, 0.5], target=target).scored(ONE)[0]
    np.testing.assert_array_equal(points, np.repeat(wanted, 2).reshape(3, 2))
