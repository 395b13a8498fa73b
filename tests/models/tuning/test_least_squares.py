"""Least squares of a race: gradients of the rows, their Krylov space, and the weights that follow for each radius."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import Arrays, FloatArray, ProblemError
from models.losses.base import Loss
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem, SiteTerms
from models.tuning.at_hand import answer_cuts, answer_part
from models.tuning.budget import Budget, OneTraining
from models.tuning.candidates import Candidate, grid
from models.tuning.least_squares import SQUARE, LeastSquares, is_by_squares, of_squares
from models.tuning.racing import Tuner
from models.tuning.rungs import Asked
from models.tuning.terms import TuningTerms

LOSS = get_loss("pinball")
WEIGHTS = (0.5, 0.3, 0.2)
RADIUS = 4e-3
ONE = Candidate(1.0, 1.0)


def problems(seed: int, n_features: int, n_rows: int = 40, rank: int | None = None) -> dict[str, SiteProblem]:
    random, found = np.random.default_rng(seed), {}
    for number in range(len(WEIGHTS)):
        features = random.uniform(size=(n_rows, n_features))
        if rank is not None:
            features[:, rank:] = 0.0
        targets = np.clip(features @ random.uniform(-1, 1, n_features) / n_features + 0.5, 0.0, 1.0)
        found[f"site-{number}"] = SiteProblem(features, targets, RobustSpec(RADIUS, 1.0, loss=LOSS))
    return found


def terms_of(loss: Loss = LOSS, intercept: bool = True) -> TuningTerms:
    sites = tuple(SiteTerms(f"site-{number}", weight, RADIUS, 1.0) for number, weight in enumerate(WEIGHTS))
    return TuningTerms(sites, loss, "l2", intercept)


def without(plant: SiteProblem, fold: int) -> SiteProblem:
    """The rows without a third of them."""
    kept = np.arange(len(plant.labels)) % 3 != fold
    return SiteProblem(plant.features[kept], plant.labels[kept], plant.spec)


def answers(plants: dict[str, SiteProblem], point: FloatArray) -> dict[str, Arrays]:
    """What the sites tell at a point (D,), of one head."""
    told = {name: answer_cuts(of_squares([plant]), point[None]).arrays for name, plant in plants.items()}
    return {name: {key: array[0] for key, array in arrays.items()} for name, arrays in told.items()}


def asked_out(plants: dict[str, SiteProblem], most: int = 100) -> LeastSquares:
    """All that there is to ask, or the first ``most`` questions."""
    pool = LeastSquares(terms_of(), next(iter(plants.values())).features.shape[1])
    for _ in range(most):
        step = pool.step(ONE)
        if step.gap == 0.0:
            break
        pool.add(ONE, step.point, answers(plants, step.point))
    return pool


def rows_of(plants: dict[str, SiteProblem]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows (N, D) with the intercept's 1, targets (N,), and what each weighs in the mean over the sites (N,)."""
    parts = [(np.column_stack([each.features, np.ones(len(each.labels))]), each.labels) for each in plants.values()]
    weights = np.concatenate([np.full(len(y), share / len(y)) for (_, y), share in zip(parts, WEIGHTS, strict=True)])
    return np.vstack([rows for rows, _ in parts]), np.concatenate([y for _, y in parts]), weights


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_a_question_of_squares_is_answered_by_their_gradient_without_a_ball(seed: int, n_features: int) -> None:
    plant = problems(seed, n_features)["site-1"]
    point = np.random.default_rng(seed).uniform(-1.0, 1.0, n_features + 1)
    point /= np.abs(point).sum()
    rows = np.column_stack([plant.features, np.ones(len(plant.labels))])
    residual = rows @ point - plant.labels
    told = answer_cuts(of_squares([plant]), point[None]).arrays
    np.testing.assert_allclose(told["slope"][0], residual @ rows / len(rows), atol=1e-12)
    assert told["risk"][0] == pytest.approx(0.5 * np.mean(residual**2), abs=1e-12)
    assert told["norm_weight"][0] == 0.0


def test_no_row_weighs_more_than_an_honest_question_lets_it_however_far_it_is_asked() -> None:
    plant = problems(0, 3)["site-0"]
    found = answer_cuts(of_squares([plant]), np.array([[1e6, -1e5, 0.0, 7.0]]))
    assert np.abs(found.account.rows[0]).max() <= SQUARE.epsilon / len(plant.labels) * (1 + 1e-12)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_asked_to_the_end_they_are_the_least_squares_of_all_rows(seed: int, n_features: int) -> None:
    plants = problems(seed, n_features)
    pool = asked_out(plants)
    assert pool.asked(ONE) <= n_features + 2
    rows, targets, weights = rows_of(plants)
    root = np.sqrt(weights)
    wanted = np.linalg.lstsq(rows * root[:, None], targets * root, rcond=None)[0]
    free = pool.step(Candidate(1e-9, np.inf)).best
    here, best = ((weights * (rows @ each - targets) ** 2).sum() for each in (free, wanted))
    assert best - 1e-12 <= here <= best + 1e-6


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 10.0, 100.0]), st.sampled_from([0.5, 1e9]))
def test_the_weights_of_a_radius_are_those_of_the_reference(seed: int, radius: float, cost: float) -> None:
    """CVXPY: the mean error of normal residuals, and the radius times the larger of norm and 1 / cost."""
    plants, candidate = problems(seed, 4), Candidate(radius, cost)
    found = asked_out(plants).step(candidate).best
    rows, targets, weights = rows_of(plants)
    variable = cp.Variable(5)
    spread = cp.norm(cp.multiply(np.sqrt(weights), rows @ variable - targets))
    price = LOSS.lipschitz * RADIUS * radius
    mean_error = 0.5 * np.sqrt(2 / np.pi)  # of half the absolute value of a standard normal
    best = cp.Problem(cp.Minimize(mean_error * spread + price * cp.maximum(cp.norm(variable[:4]), 1 / cost))).solve()
    own = np.sqrt((weights * (rows @ found - targets) ** 2).sum())
    assert mean_error * own + price * max(np.linalg.norm(found[:4]), 1 / cost) == pytest.approx(best, rel=1e-2)


def test_few_directions_leave_less_than_any_others_of_as_many_products() -> None:
    """Of a plane in twelve features three directions have most of it; as many features taken at random have not."""
    plants = problems(3, 12)
    rows, targets, weights = rows_of(plants)
    pool = asked_out(plants, most=4)
    error = float((weights * (rows @ pool.step(Candidate(1e-9, np.inf)).best - targets) ** 2).sum())
    random, root, others = np.random.default_rng(0), np.sqrt(weights), []
    for _ in range(20):
        some = rows[:, random.choice(13, 3, replace=False)]
        weights_of = np.linalg.lstsq(some * root[:, None], targets * root, rcond=None)[0]
        others.append(float((weights * (some @ weights_of - targets) ** 2).sum()))
    assert error < min(others)


def test_a_closed_space_is_asked_no_more() -> None:
    pool = asked_out(problems(1, 6, rank=2))
    assert pool.asked(ONE) <= 4  # zero, two features, and the intercept
    assert pool.step(ONE).gap == 0.0


def test_targets_that_are_all_zero_need_no_weights() -> None:
    plants = {name: SiteProblem(each.features, np.zeros(40), each.spec) for name, each in problems(0, 3).items()}
    pool = asked_out(plants)
    assert pool.asked(ONE) == 1
    np.testing.assert_array_equal(pool.step(ONE).best, np.zeros(4))


def test_an_answer_that_bends_downwards_leads_to_no_weights_far_away() -> None:
    """As a guard's other answer may: along one direction squares would fall for ever, below 0."""
    plants = problems(7, 5)
    pool = LeastSquares(terms_of(), 5)
    for number in range(6):
        point = pool.step(ONE).point
        told = answers(plants, point)
        if number == 1:
            told = {name: {**each, "slope": each["slope"] - 2.0 * point} for name, each in told.items()}
        pool.add(ONE, point, told)
    rows, targets, weights = rows_of(plants)
    mean_square = float((weights * (rows @ pool.step(Candidate(1e-9, np.inf)).best - targets) ** 2).sum())
    assert mean_square <= float((weights * targets**2).sum())


def test_points_to_ask_keep_residuals_within_the_square() -> None:
    plants = problems(2, 6)
    pool = LeastSquares(terms_of(), 6)
    for _ in range(6):
        point = pool.step(ONE).point
        assert np.abs(point).sum() <= 1.0 + 1e-2
        pool.add(ONE, point, answers(plants, point))


@pytest.mark.parametrize(("changes", "mixture", "expected"), [
    ({}, 0.0, True),
    ({"loss": get_loss("huber")}, 0.0, True),
    ({"loss": get_loss("pinball", quantile=0.9)}, 0.0, False),
    ({"loss": get_loss("hinge")}, 0.0, False),
    ({"transport_norm": "l1"}, 0.0, False),
    ({"unbounded": False}, 0.0, False),
    ({}, 0.1, False),
])
def test_a_race_goes_by_squares_where_they_stand_for_the_risk(
    changes: dict[str, Any], mixture: float, expected: bool
) -> None:
    terms = replace(terms_of(), **changes)
    assert is_by_squares(terms, [ONE, Candidate(3.0, 1.0, mixture_radius=mixture)]) is expected


def test_a_race_of_targets_asks_one_gradient_of_each_lift_and_fold_in_an_exchange_and_scores_at_last() -> None:
    plants = problems(5, 4)
    tuner = Tuner(
        terms_of(), grid((1.0, 10.0, 100.0), (1e9,)), (4,), 1, 3, Budget(OneTraining(12, 4000.0), 2.0), "best", 4
    )
    exchanges = 0
    while (exchange := tuner.exchange()) is not None and not exchange.scored:
        exchanges += 1
        assert [part.fold for part in exchange.asked] == [0, 1, 2]
        assert all(part.squares and part.penalty is None for part in exchange.asked)
        tuner.tell_cuts([
            {name: answer_part(part, [without(plant, part.fold)]).arrays for name, plant in plants.items()}
            for part in exchange.asked
        ])
    assert exchange is not None
    assert exchanges == 6  # at zero, and along five directions: four features and the intercept
    assert len({part.weights.tobytes() for part in exchange.asked}) == 3 * 3
    assert all(np.isfinite(part.weights).all() for part in exchange.asked)


def test_a_part_of_squares_is_cut_as_such() -> None:
    plant = problems(0, 2)["site-0"]
    part = Asked(ONE, 0, np.array([[0.2, 0.3, 0.1]]), squares=True)
    found, plain = (answer_part(each, [plant]).arrays for each in (part, Asked(ONE, 0, part.weights)))
    wanted = answer_cuts(of_squares([plant]), part.weights).arrays
    np.testing.assert_array_equal(found["slope"], wanted["slope"])
    assert not np.allclose(found["slope"], plain["slope"])


def test_one_candidate_is_no_race() -> None:
    with pytest.raises(ProblemError, match="a grid needs two candidates at least to choose from, got 1"):
        Tuner(terms_of(), (ONE,), (4,), 1, 3, Budget(OneTraining(12, 4000.0), 2.0), "best", 4)


@pytest.mark.parametrize("radius", [1.0, 10.0, 20.0, 30.0])
def test_the_weights_of_a_candidate_are_where_its_risk_of_normal_errors_is_least(radius: float) -> None:
    """``c (sqrt(2 / pi) s + rho max(||w||, 1 / kappa))`` with the mean square s^2, c = 1/2 of the absolute error."""
    plants = problems(5, 4)
    rows, targets, weights = rows_of(plants)
    curvature, pull = (rows.T * weights) @ rows, (rows.T * weights) @ targets

    def risk(found: FloatArray) -> float:
        spread = math.sqrt(float(weights @ (rows @ found - targets) ** 2))
        return 0.5 * (math.sqrt(2.0 / math.pi) * spread + RADIUS * radius * max(np.linalg.norm(found[:-1]), 1e-9))

    ridge = np.diag(np.append(np.ones(4), 0.0))
    least = min(risk(np.linalg.solve(curvature + size * ridge, pull)) for size in np.logspace(-7, 3, 400))
    assert risk(asked_out(plants).step(Candidate(radius, 1e9)).best) <= least * (1.0 + 1e-3)
