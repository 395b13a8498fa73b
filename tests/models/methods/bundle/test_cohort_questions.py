"""What plants of cohorts are asked after a projection, and in which shares their own past cuts made its slope."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.cuts.cut_model import ModelPoint
from models.cuts.evidence import EARLIER_RUN, Evidence, cut_model
from models.methods.bundle.cohort_questions import counted_shares, question_of
from models.methods.bundle.cohort_site import UNKNOWN_TO_SITES, own_centre
from models.methods.bundle.level import norm_and_sides, prox_questions
from models.problem import ServerProblem, SiteTerms
from tests.models.methods.bundle.test_prox_questions import projected

PROBLEM = ServerProblem(2, (SiteTerms("one", 0.7, 0.1, 1.0), SiteTerms("two", 0.3, 0.1, 1.0)), "l2", True)
QUESTIONS, EXCHANGES = 2, 3


def evidence(earlier: tuple[int, ...] = ()) -> Evidence:
    """Three exchanges of two questions with four cuts each of two cohorts; ``earlier``: cohorts of cuts before them.

    Those of an exchange come question by question, of the cohorts in turn, that at the point before the prox cut.
    """
    sites = [*earlier, *[cohort for _ in range(EXCHANGES * QUESTIONS) for cohort in (0, 0, 1, 1)]]
    rounds = [EARLIER_RUN] * len(earlier) + [1 + k // 8 for k in range(8 * EXCHANGES)]
    count = len(sites)
    random = np.random.default_rng(0)
    return replace(
        Evidence.empty(PROBLEM), cut_site=np.array(sites, float), cut_round=np.array(rounds, float),
        cut_used=np.array(rounds, float), cut_offset=random.normal(size=count),
        cut_slope=random.normal(size=(count, 3)),
        cut_norm_weight=np.zeros(count), cut_swing=np.zeros((count, 0)), exchanges=EXCHANGES,
    )


def points(count: int) -> list[ModelPoint]:
    random = np.random.default_rng(1)
    return [ModelPoint(np.zeros(3), random.uniform(0.0, 0.1, count), 1.0, PROBLEM.weights) for _ in range(QUESTIONS)]


@pytest.mark.parametrize("earlier", [(), (0,), (1, 0)])
def test_shares_stand_by_cohort_question_exchange_and_cut(earlier: tuple[int, ...]) -> None:
    """Multipliers over the cohort's weight, each cut in the place that its plants know it by."""
    known, weights = evidence(earlier), PROBLEM.weights
    found = points(known.cut_site.size)
    for each in found:
        each.multipliers[: len(earlier)] = 0.0
    shares = counted_shares(known, cut_model(known, PROBLEM), found)
    assert shares.shape == (2, QUESTIONS, 2 * QUESTIONS * EXCHANGES)
    for cohort in range(2):
        for k, each in enumerate(found):
            expected = []
            for exchange in range(1, EXCHANGES + 1):
                own = [j for j in range(known.cut_site.size)
                       if known.cut_site[j] == cohort and known.cut_round[j] == exchange]
                expected += [each.multipliers[j] / weights[cohort] for j in own]
            np.testing.assert_allclose(shares[cohort, k], expected)


def test_where_a_cut_of_an_earlier_run_counts_nothing_is_said_but_that() -> None:
    """In that projection and of that cohort alone."""
    known = evidence((0, 1, 1))
    found = points(known.cut_site.size)
    found[0].multipliers[:3] = 0.0, 0.0, 0.01
    found[1].multipliers[:3] = 0.0, 0.0, 0.0
    shares = counted_shares(known, cut_model(known, PROBLEM), found)
    assert shares[1, 0, 0] == UNKNOWN_TO_SITES and not shares[1, 0, 1:].any()
    assert (shares[0] > 0).all() and (shares[1, 1] > 0).all()


def test_a_cohort_without_weight_has_no_shares() -> None:
    problem = replace(PROBLEM, sites=(SiteTerms("one", 1.0, 0.1, 1.0), SiteTerms("two", 0.0, 0.1, 1.0)))
    known = evidence()
    shares = counted_shares(known, cut_model(known, problem), points(known.cut_site.size))
    assert shares[0].all() and not shares[1].any() and np.isfinite(shares).all()


def test_a_question_is_the_point_what_its_norm_adds_and_where_each_cohort_looks() -> None:
    model, found, best = projected(0, "l2", False, None)
    terms = tuple(SiteTerms(f"c{g}", float(weight), 0.1, 1.0) for g, weight in enumerate(model.site_weights))
    problem = ServerProblem(5, terms, "l2", True, parameters={"closeness": 100.0}, gap=1e-6)
    point, of_norm, sides, centre, penalty = question_of(model, found, best, problem, 0.5)
    np.testing.assert_allclose(point, found.point, atol=1e-9)
    assert (of_norm == norm_and_sides(model, found, best)[0]).all() and sides.shape == (5,)
    expected = prox_questions(model, found, best, problem, 0.5)
    assert (centre == expected[0]).all() and (penalty == expected[1]).all()


def test_at_the_level_already_every_plant_takes_a_step_of_its_own_from_the_point() -> None:
    model, found, best = projected(0, "l2", False, None)
    terms = tuple(SiteTerms(f"c{g}", float(weight), 0.1, 1.0) for g, weight in enumerate(model.site_weights))
    problem = ServerProblem(5, terms, "l2", True, parameters={"closeness": 100.0}, gap=1e-6)
    there = replace(found, level_price=0.0)
    point, of_norm, sides, centre, penalty = question_of(model, there, best, problem, 1.0)
    assert not of_norm.any() and not sides.any() and not penalty.any()
    assert centre.shape == (4, 6) and (centre == point).all()


def test_a_plants_own_centre_is_of_its_question_its_sides_and_the_cuts_that_count() -> None:
    """``w + (sum of shares (s + sides c) + carried of_norm) / penalty``; what no share has is of the floor."""
    random, features = np.random.default_rng(4), 3
    slope, swing, norm_weight = random.normal(size=(2, 4, 4)), random.random((2, 4, 3)), random.random((2, 4))
    counted = np.zeros((2, 2, 4))
    counted[0, 0, 1], counted[0, 1, 2], counted[1, 1, 0] = 0.3, 0.4, 0.8
    message = {
        "points": random.normal(size=(2, 4)), "centre": np.full((2, 4), 9.0), "penalty": np.array([0.5, 2.0]),
        "counted": counted.reshape(2, -1), "of_norm": random.normal(size=(2, 4)), "sides": random.normal(size=(2, 3)),
    }
    memory = {"slope": slope, "swing": swing, "norm_weight": norm_weight}
    for k in range(2):
        whole, carried = np.zeros(4), (1.0 - counted[k].sum()) * norm_weight.max()
        for cut in np.ndindex(2, 4):
            whole += counted[k][cut] * (slope[cut] + np.append(message["sides"][k] * swing[cut], 0.0))
            carried += counted[k][cut] * norm_weight[cut]
        wanted = message["points"][k] + (whole + carried * message["of_norm"][k]) / message["penalty"][k]
        np.testing.assert_allclose(own_centre(message, k, memory, features), wanted, rtol=1e-5)
