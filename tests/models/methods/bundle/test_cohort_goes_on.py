"""Cohorts of a run that goes on: from an earlier one with their own centres, and without those that weigh nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.cuts.evidence import Evidence
from models.methods.bundle.cohort import CohortServer, CohortState
from models.methods.catalogue import get_method
from models.problem import ServerProblem, SiteTerms, Status

QUESTIONS, COHORTS, DIMENSION = 2, 3, 3
PARAMETERS = {**get_method("cohort-bundle").parameters, "questions": float(QUESTIONS)}


def problem_of(names: str) -> ServerProblem:
    """Cohorts of these letters, two features and an intercept."""
    sites = tuple(SiteTerms(name, 1.0 / len(names), 0.1, 1.0) for name in names)
    return ServerProblem(2, sites, "l2", True, parameters=PARAMETERS)


def earlier() -> CohortState:
    """Two points, the first of which is the best one, and a cut of each cohort."""
    shape = (COHORTS, QUESTIONS, DIMENSION)
    evidence = replace(
        Evidence.empty(problem_of("abc")), points=np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        point_round=np.array([1.0, 2.0]), risks=np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]), best=0, upper=0.2,
        cut_site=np.arange(3.0), cut_offset=np.zeros(3), cut_slope=np.ones((3, DIMENSION)), cut_norm_weight=np.zeros(3),
        cut_swing=np.zeros((3, 0)), cut_round=np.ones(3), cut_used=np.ones(3),
    )
    return CohortState(
        evidence, np.array([[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]), np.zeros((QUESTIONS, DIMENSION)),
        np.zeros((QUESTIONS, 2)), 10.0 + np.arange(np.prod(shape), dtype=float).reshape(shape),
        1.0 + np.arange(COHORTS * QUESTIONS, dtype=float).reshape(COHORTS, QUESTIONS), np.ones((COHORTS, QUESTIONS, 4)),
    )


def told(height: float, slope: float) -> dict[str, np.ndarray]:
    """A risk of 0.7 at each question, and a cut of this height and slope there."""
    return {
        "risk": np.full(QUESTIONS, 0.7), "cut_height": np.full(QUESTIONS, height),
        "slope": np.full((QUESTIONS, DIMENSION), slope), "norm_weight": np.full(QUESTIONS, 0.1),
        "minorant_offset": np.zeros(QUESTIONS), "minorant_slope": np.zeros((QUESTIONS, DIMENSION)),
        "minorant_norm_weight": np.full(QUESTIONS, 0.1),
    }


@pytest.mark.parametrize("kept", [[0, 1, 2], [2, -1, 0, -1], [1], [-1, -1]])
def test_a_cohort_that_is_kept_has_its_own_centres_and_a_new_one_the_points_themselves(kept: list[int]) -> None:
    server, before = CohortServer(), earlier()
    now = problem_of("abcdef"[: len(kept)])
    warm = server.warm(before, problem_of("abc"), now, kept)
    wanted = np.array([[1.0, 2.0, 3.0], [7.0, 8.0, 9.0]])
    np.testing.assert_array_equal(warm.points, wanted, err_msg="the best point in place of the first")
    for cohort, place in enumerate(kept):
        np.testing.assert_array_equal(warm.centre[cohort], before.centre[place] if place >= 0 else wanted)
        assert warm.penalty[cohort].tolist() == (before.penalty[place].tolist() if place >= 0 else [0.0] * QUESTIONS)
    assert sorted(warm.evidence.cut_site.tolist()) == [c for c, place in enumerate(kept) if place >= 0]
    asked = server.messages(warm, now)
    assert len(asked) == len(kept) and all((each["points"] == wanted).all() for each in asked.values())


@pytest.mark.parametrize(("weights", "away", "known"), [
    ((1.0, 0.0), "b", True), ((0.5, 0.5), "b", False), ((0.0, 1.0), "a", True), ((0.0, 1.0), "b", False),
])
def test_a_cohort_that_weighs_nothing_may_be_away_and_the_upper_bound_is_known(
    weights: tuple[float, float], away: str, known: bool
) -> None:
    sites = tuple(SiteTerms(name, weight, 0.1, 1.0) for name, weight in zip("ab", weights, strict=True))
    server, problem = CohortServer(), ServerProblem(2, sites, "l2", True, parameters=PARAMETERS)
    state = server.step(server.init(problem), problem, {name: told(0.7, 1.0) for name in "ab" if name != away})
    assert server.certificate(state).upper == (pytest.approx(0.7) if known else np.inf)
    assert server.certificate(state).fresh_weight == pytest.approx(1.0 if known else 1.0 - weights["ab".index(away)])


@pytest.mark.parametrize(("here", "status"), [("ab", Status.STALLED), ("a", Status.CONTINUE), ("", Status.CONTINUE)])
def test_a_run_stalls_where_all_were_asked_the_same_twice_and_not_while_some_are_away(
    here: str, status: Status
) -> None:
    """Guards let flat cuts out, far below the risk: around the best point all that leads on was asked."""
    server, problem = CohortServer(), problem_of("ab")
    once = server.step(server.init(problem), problem, {name: told(0.1, 0.0) for name in "ab"})
    assert server.status(once, problem) is Status.CONTINUE and not once.points.any()
    again = server.step(once, problem, {name: told(0.1, 0.0) for name in here})
    assert server.status(again, problem) is status


def test_a_run_that_stalled_goes_on_without_a_plant_that_left() -> None:
    """What its cohort said is forgotten, and the best point is asked of those that stay."""
    server, problem = CohortServer(), problem_of("abc")
    found = server.anew(replace(earlier(), stagnated=True), 1)
    assert server.status(found, problem) is Status.CONTINUE
    assert found.evidence.cut_site.tolist() == [0.0, 2.0] and np.isnan(found.evidence.risks[:, 1]).all()
    assert not found.penalty[1].any() and not found.counted[1].any()
    assert found.points[0].tolist() == [1.0, 2.0, 3.0] and server.certificate(found).upper == np.inf
    np.testing.assert_array_equal(found.penalty[[0, 2]], earlier().penalty[[0, 2]])
