"""Answers that come late: which points count from above, and of whom a bound then speaks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.cuts.evidence import Evidence, with_answers
from models.cuts.late import with_exact_upper
from tests.models.cuts.told import NAMES, answer_of, problem_of


def test_beside_a_site_that_is_away_one_that_is_at_work_still_keeps_a_point_from_counting() -> None:
    """Its risk there could be anything; the one that is away enters by its cuts, and the weight says so."""
    problem, away = problem_of(), np.array([name == "e" for name in NAMES])
    everybody = {name: answer_of(0.9) for name in NAMES}
    first = with_answers(Evidence.empty(problem), problem, np.zeros(3), everybody)
    three = with_answers(first, problem, np.ones(3), {name: answer_of(0.2) for name in ("a", "b", "c")})
    found = with_exact_upper(three, problem, away)
    assert (found.best, found.upper, found.fresh_weight) == (0, pytest.approx(0.9), pytest.approx(1.0))
    four = with_answers(first, problem, np.ones(3), {name: answer_of(0.2) for name in ("a", "b", "c", "d")})
    found = with_exact_upper(four, problem, away)
    assert (found.best, found.upper) == (1, pytest.approx(0.8 * 0.2 + 0.2 * 0.9))
    assert found.fresh_weight == pytest.approx(0.8)
    nobody = with_exact_upper(four, problem, np.zeros(5, dtype=bool))
    assert (nobody.best, nobody.upper) == (0, pytest.approx(0.9))
    only = with_answers(Evidence.empty(problem), problem, np.ones(3), {"a": answer_of(0.2), "e": answer_of(0.2)})
    nothing = with_exact_upper(only, problem, away)
    assert (nothing.best, nothing.upper, nothing.fresh_weight) == (-1, math.inf, 0.0)
