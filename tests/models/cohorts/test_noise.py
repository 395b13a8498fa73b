"""One row changes a sum by no more than is said; the noise is what is stated; bounds hold as often as stated."""

from __future__ import annotations

import inspect
import itertools
import math
import random
import secrets
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import FloatArray, ProblemError
from models.cohorts import noise
from models.cohorts.dealing import cohort_problem, deal
from models.cohorts.discrete_gaussian import LEAST_SIGMA
from models.cohorts.noise import (
    BITS,
    NoisePlan,
    NoiseTerms,
    check_noise,
    noisy_answer,
    noisy_words,
    sensitivities,
    sigmas,
)
from models.cohorts.noisy_bounds import bounded_answer, norm_of_optimum, point_within, walled
from models.cuts.evidence import Evidence, cut_model
from models.geometry.norms import dual_norm
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.catalogue import get_method
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import server_problem, train
from models.simulation.noisy_rounds import train_with_noise
from models.worst_case.risk import site_risk

LOSSES = ["hinge", "smooth_hinge", "logistic"]
NORMS = ["l1", "l2", "linf"]
CORNERS = st.sampled_from([0.0, 1.0, None])


def drawn(seed: int, *, rows: int = 12, n_features: int = 3, radius: float = 0.02, **more: Any) -> SiteProblem:
    draw = np.random.default_rng(seed)
    features = np.round(draw.uniform(size=(rows, n_features)), 1)  # ties
    spec = RobustSpec(
        radius, more.get("cost", 1.0), more.get("norm", "l2"), None, more.get("fit_intercept", True),
        get_loss(more.get("loss", "hinge")),
    )
    labels = np.where((features - 0.5) @ draw.normal(size=n_features) + 0.1 * draw.normal(size=rows) > 0, 1.0, -1.0)
    return SiteProblem(features, labels, spec)


def federation(seed: int, rows: int = 40, n_sites: int = 3, **more: Any) -> dict[str, SiteProblem]:
    return {f"plant-{g}": drawn(1000 * seed + g, rows=rows, **more) for g in range(n_sites)}


@given(
    seed=st.integers(0, 10**6), loss=st.sampled_from(LOSSES), norm=st.sampled_from(NORMS), size=st.floats(0.0, 8.0),
    cost=st.sampled_from([1e-3, 1.0, math.inf]), radius=st.sampled_from([0.0, 1e-3, 0.5]),
    row=st.lists(CORNERS, min_size=3, max_size=3), sign=st.sampled_from([-1.0, 1.0]), fit_intercept=st.booleans(),
)
def test_one_row_replaced_changes_an_answer_by_no_more_than_is_said(
    seed: int, loss: str, norm: str, size: float, cost: float, radius: float, row: list[float | None], sign: float,
    fit_intercept: bool,
) -> None:
    problem = drawn(seed, rows=5, loss=loss, norm=norm, cost=cost, radius=radius, fit_intercept=fit_intercept)
    draw = np.random.default_rng(seed)
    point = size * draw.normal(size=3 + fit_intercept)
    other = np.array([draw.uniform() if entry is None else entry for entry in row])
    features, labels = problem.features.copy(), problem.labels.copy()
    features[2], labels[2] = other, sign
    changed = SiteProblem(features, labels, problem.spec)
    limits = sensitivities(point, 3, problem.spec.loss, 1 / 5)
    before, after = noisy_answer(problem, point), noisy_answer(changed, point)
    for name, limit in limits.items():
        assert float(np.linalg.norm(after[name] - before[name])) <= limit * (1 + 1e-9) + 1e-12, name


def test_the_sensitivities_are_reached() -> None:
    """So that nobody pays for noise that no row needs."""
    spec = RobustSpec(0.0, math.inf, "l2", None, True)
    point, rows = np.array([3.0, 3.0, -1.0]), np.array([[1.0, 1.0], [0.5, 0.5]])
    ends = [
        noisy_answer(SiteProblem(np.vstack([row[None], rows[1:]]), np.array([sign, 1.0]), spec), point)
        for row, sign in ((np.ones(2), -1.0), (np.ones(2), 1.0))
    ]
    limits = sensitivities(point, 2, spec.loss, 1 / 2)
    assert float(ends[0]["risk"] - ends[1]["risk"]) == pytest.approx(limits["risk"])
    flat = np.zeros(3)
    slopes = [
        noisy_answer(SiteProblem(np.ones((2, 2)), np.array([sign, 1.0]), spec), flat)["slope"] for sign in (-1.0, 1.0)
    ]
    assert np.linalg.norm(slopes[0] - slopes[1]) == pytest.approx(sensitivities(flat, 2, spec.loss, 1 / 2)["slope"])


@given(seed=st.integers(0, 10**6), loss=st.sampled_from(LOSSES), norm=st.sampled_from(NORMS),
       radius=st.sampled_from([0.0, 0.02, 0.4]), cost=st.sampled_from([0.1, 1.0, math.inf]))
def test_the_plane_lies_below_the_risk_everywhere(
    seed: int, loss: str, norm: str, radius: float, cost: float
) -> None:
    problem, draw = drawn(seed, loss=loss, norm=norm, radius=radius, cost=cost), np.random.default_rng(seed)
    answer = noisy_answer(problem, draw.normal(size=4) * 3)
    for point in draw.normal(size=(8, 4)) * 4:
        plane = float(answer["offset"] + answer["slope"] @ point)
        plane += radius * float(dual_norm(point[:3], problem.spec.transport_norm))
        assert plane <= site_risk(point, problem).value + 1e-9


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), loss=st.sampled_from(LOSSES))
def test_a_tangent_of_a_loss_meets_zero_between_zero_and_the_loss_there(seed: int, loss: str) -> None:
    chosen, at = get_loss(loss), np.random.default_rng(seed).normal(size=200) * 20
    height = chosen.value(at) - chosen.slope(at) * at
    assert height.min() >= -1e-9 and height.max() <= float(chosen.value(np.zeros(1))[0]) + 1e-9


def test_the_noise_of_the_honest_is_what_the_budget_asks_for() -> None:
    point, loss = np.array([1.0, -2.0, 0.5]), get_loss("hinge")
    for honest in (1, 2, 7):
        found = sigmas(point, 2, loss, NoiseTerms(1e-3, honest, 0.01))
        rho = 0.0
        for name, change in sensitivities(point, 2, loss, 1e-3).items():
            # Of whole numbers: each entry may be rounded up in one sum and down in the other.
            in_words = math.ldexp(change, BITS) + math.sqrt(3 if name == "slope" else 1)
            rho += in_words**2 / (2 * honest * found[name] ** 2)
        assert 0.0099 <= rho <= 0.01


def test_however_large_the_budget_the_noise_is_as_wide_as_its_sums_need() -> None:
    """Below that width sums of what plants draw are no longer near to the noise that the budget is counted of."""
    for rho in (1e12, 1e20):
        found = sigmas(np.array([1.0, -2.0, 0.5]), 2, get_loss("hinge"), NoiseTerms(1e-3, 3, rho))
        assert found == dict.fromkeys(("risk", "offset", "slope"), LEAST_SIGMA)


def _noise(seed: int, problem: SiteProblem, point: FloatArray, terms: NoiseTerms) -> FloatArray:
    words = noisy_words(problem, point, 0.5, terms, random.Random(seed).randrange).view(np.int64)
    answer = noisy_answer(problem, point)
    exact = np.concatenate([0.5 * answer[name].ravel() for name in ("risk", "offset", "slope")])
    return np.asarray(words / 2.0**BITS - exact)


def test_words_carry_the_answer_and_the_stated_noise() -> None:
    problem, point, terms = drawn(3), np.array([2.0, 0.0, -3.0, 1.0]), NoiseTerms(0.5 / 12, 2, 0.05)
    found = np.array([_noise(seed, problem, point, terms) for seed in range(1500)])
    scales = sigmas(point, 3, problem.spec.loss, terms)
    wanted = np.array([scales["risk"], scales["offset"], *[scales["slope"]] * 4]) / 2.0**BITS
    assert np.abs(found.std(axis=0) / wanted - 1).max() < 0.1
    assert np.abs(found.mean(axis=0) / wanted).max() < 0.15
    assert np.abs(np.corrcoef(found.T) - np.eye(6)).max() < 0.12


def test_the_operating_system_draws_and_every_answer_anew() -> None:
    assert inspect.signature(noisy_words).parameters["randbelow"].default is secrets.randbelow
    problem, terms = drawn(3), NoiseTerms(1.0, 1, 0.05)
    drawn_words = [noisy_words(problem, np.ones(4), 1.0, terms) for _ in range(2)]
    assert (drawn_words[0] != drawn_words[1]).all()
    assert "seed" not in inspect.getsource(noise).replace("seeds", "")


def test_bounds_hold_at_least_as_often_as_stated() -> None:
    """At a confidence of .5, and with what is given away by the union of all events counted: far more often."""
    held = {0.5: 0, 0.95: 0}
    runs, draws = 20, 4
    for seed in range(runs // draws):
        sites = federation(seed, rows=2000, radius=0.05)
        exact = train(sites, gap=1e-4)
        for confidence, draw in itertools.product(held, range(draws)):
            plan = NoisePlan(8.0, 1e-5, confidence, 8, 12.0)
            found = train_with_noise(sites, deal(list(sites)), plan, random.Random(draws * seed + draw).randrange)
            risk = np.mean([site_risk(found.weights, site).value for site in sites.values()])
            assert float(np.linalg.norm(exact.weights)) <= plan.within
            assert found.certificate.lower > 0.5 * exact.certificate.lower
            held[confidence] += bool(
                found.certificate.lower <= exact.certificate.upper and risk <= found.certificate.upper
            )
    assert held[0.5] >= 0.5 * runs and held[0.95] >= 0.95 * runs


def test_one_plane_or_risk_fails_no_more_often_than_its_share() -> None:
    sites, plan = federation(5, rows=100), NoisePlan(5.0, 1e-5, 0.3, 1, 6.0)
    problem = server_problem(sites, None, get_method(noise.METHOD), {}, 1e-3)
    draw, point = np.random.default_rng(0), np.array([1.0, -1.0, 2.0, 0.0])
    best = draw.normal(size=4)
    best *= plan.within / np.linalg.norm(best)
    shares = dict.fromkeys(sites, 1 / 3)
    terms = NoiseTerms(1 / 300, 3, plan.rho)
    at_best, at_point = (np.mean([site_risk(w, site).value for site in sites.values()]) for w in (best, point))
    failed = {"risk": 0, "plane": 0, "margin of the plane": 0}
    runs, each = 400, random.Random(1).randrange
    exact = [noisy_answer(site, point) for site in sites.values()]
    true_plane = np.mean([float(answer["offset"] + answer["slope"] @ best) for answer in exact])
    true_plane += 0.02 * float(np.linalg.norm(best[:3]))
    for _ in range(runs):
        words = np.add.reduce([noisy_words(site, point, 1 / 3, terms, each) for site in sites.values()])
        found = bounded_answer(
            words, point, problem, get_loss("hinge"), plan, terms, shares, dict.fromkeys(sites, 0.02), complete=True
        )
        steps = float(found["slope"] @ (best - point))
        norms = float(np.linalg.norm(best[:3]) - np.linalg.norm(point[:3]))
        plane = float(found["cut_height"]) + steps + float(found["norm_weight"]) * norms
        failed["risk"] += int(found["risk"] < at_point)
        failed["plane"] += int(plane > at_best)
        failed["margin of the plane"] += int(plane > true_plane)
    share = (1 - plan.confidence) / 2
    assert failed["plane"] <= failed["margin of the plane"] <= share * runs
    assert 0.01 * runs <= failed["margin of the plane"] and 0.01 * runs <= failed["risk"] <= share * runs


def test_a_sum_over_the_threshold_bounds_from_below_alone() -> None:
    sites, plan = federation(5, rows=100), NoisePlan(50.0, 1e-5, 0.95, 4, 6.0)
    problem = server_problem(sites, None, get_method(noise.METHOD), {}, 1e-3)
    terms, point, radii = NoiseTerms(1 / 300, 2, plan.rho), np.ones(4), dict.fromkeys(sites, 0.02)
    words = {name: noisy_words(site, point, 1 / 3, terms) for name, site in sites.items()}
    present = dict.fromkeys(("plant-0", "plant-2"), 1 / 3)
    part = bounded_answer(
        words["plant-0"] + words["plant-2"], point, problem, get_loss("hinge"), plan, terms, present, radii,
        complete=False,
    )
    assert np.isnan(part["risk"]) and part["norm_weight"] == pytest.approx(0.02 * 2 / 3)
    with pytest.raises(ProblemError, match="needs 2 plants in a sum, got 1"):
        bounded_answer(
            words["plant-0"], point, problem, get_loss("hinge"), plan, terms, {"plant-0": 1 / 3}, radii, complete=False
        )
    with pytest.raises(ProblemError, match="6 words was due"):
        bounded_answer(
            words["plant-0"][:-1], point, problem, get_loss("hinge"), plan, terms, present, radii, complete=False
        )


def test_the_budget_is_spent_round_by_round_and_no_further() -> None:
    plan = NoisePlan(2.0, 1e-6, 0.95, 10, 5.0, heads=3)
    spent = [plan.spent(rounds) for rounds in range(11)]
    assert spent[0] == 0 and spent == sorted(spent) and 1.99 <= spent[10] <= 2.0
    with pytest.raises(ProblemError, match="would be round 11"):
        plan.spent(11)
    sites = federation(2)
    found = train_with_noise(sites, deal(list(sites)), replace(plan, heads=1), random.Random(0).randrange, gap=0.0)
    assert (found.rounds, found.epsilon) == (10, pytest.approx(2.0, rel=0.01))


@pytest.mark.parametrize(("change", "words"), [
    ({"loss": get_loss("huber")}, "one of numbers"),
    ({"support": BoxSupport(np.zeros(3), np.ones(3))}, "support to unbounded"),
])
def test_a_problem_whose_sensitivities_are_not_known_is_refused(change: dict[str, Any], words: str) -> None:
    problem = drawn(0)
    with pytest.raises(ProblemError, match=words):
        check_noise(replace(problem, spec=replace(problem.spec, **change)))


def test_rows_that_count_for_more_are_refused() -> None:
    problem, terms = drawn(0), NoiseTerms(1 / 24, 1, 0.1)
    outside = problem.features.copy()
    outside[3, 1] = 1.0 + 1e-9
    for changed, words in (
        (replace(problem, features=outside), "between 0 and 1"),
        (replace(problem, row_weights=np.full(12, 1.0)), "rows that count alike"), (problem, "scaled for 0.0417"),
    ):
        with pytest.raises(ProblemError, match=words):
            noisy_words(changed, np.zeros(4), 1.0, terms)
    with pytest.raises(ProblemError, match="does not fit into a sum"):
        noisy_words(problem, np.zeros(4), 1.0, NoiseTerms(1.0, 1, 1e-30))


@given(seed=st.integers(0, 10**5), norm=st.sampled_from(NORMS), loss=st.sampled_from(LOSSES), fit=st.booleans())
@settings(max_examples=25)
def test_some_best_weights_lie_within_the_norm_that_is_said(seed: int, norm: str, loss: str, fit: bool) -> None:
    sites = federation(seed, rows=8, n_sites=3, norm=norm, loss=loss, fit_intercept=fit, radius=0.3)
    problem = server_problem(sites, None, get_method(noise.METHOD), {}, 1e-3)
    found = norm_of_optimum(problem, get_loss(loss))
    assert math.isinf(found) == (loss == "logistic" and fit)
    inside = train(sites, gap=1e-6)
    shrunk = point_within(inside.weights, found)
    risk = np.mean([site_risk(shrunk, site).value for site in sites.values()])
    assert risk <= inside.certificate.upper * (1 + 1e-5) + 1e-9


@pytest.mark.parametrize(("rounds", "heads", "cohorts"), [(8, 1, 1), (8, 3, 1), (8, 1, 4), (20, 3, 2)])
def test_the_chances_of_all_that_may_fail_in_a_run_are_what_the_confidence_leaves(
    rounds: int, heads: int, cohorts: int
) -> None:
    """A risk and a plane of each head and cohort in each round, each subgaussian."""
    plan = NoisePlan(2.0, 1e-6, 0.9, rounds, 5.0, heads, cohorts)
    assert rounds * heads * cohorts * 2 * math.exp(-(plan.deviations**2) / 2) == pytest.approx(0.1)


def test_walls_cost_nothing_within_the_norm_and_more_than_any_loss_outside() -> None:
    sites, draw = federation(1), np.random.default_rng(0)
    problem = cohort_problem(server_problem(sites, None, get_method(noise.METHOD), {}, 1e-3), deal(list(sites)))
    walls = cut_model(walled(Evidence.empty(problem), problem, get_loss("hinge"), 3.0), problem)
    for point in draw.normal(size=(50, 4)):
        inside = 3.0 * point / np.linalg.norm(point)
        assert walls.offset.shape == (8,) and (walls.offset + walls.slope @ inside).max() <= 1e-12
        outside = point * (4.0 / np.abs(point).max())
        # A step outwards costs more than the steepest mean of losses can give back.
        assert (walls.offset + walls.slope @ outside).max() > 2 * math.sqrt(4) + 1e-9


def test_a_point_is_drawn_back_along_its_ray() -> None:
    assert point_within(np.array([3.0, 4.0]), 5.0).tolist() == [3.0, 4.0]
    assert point_within(np.array([6.0, 8.0]), 5.0).tolist() == [3.0, 4.0]
