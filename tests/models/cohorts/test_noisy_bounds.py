"""What the server makes of noisy sums where no draw is left to luck: the norm of the best weights, a risk drawn low."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.cohorts.noise import BITS, METHOD, NoisePlan, NoiseTerms, sigmas
from models.cohorts.noisy_bounds import NeverNoiseError, bounded_answer, norm_of_optimum, point_within, walled
from models.cuts.evidence import Evidence
from models.losses.catalogue import get_loss
from models.methods.catalogue import get_method
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import server_problem, train
from models.worst_case.risk import site_risk


@pytest.mark.parametrize(("norm", "fit"), [("l1", False), ("l2", True)])
def test_best_weights_that_are_as_large_as_they_can_be_lie_within_the_norm(norm: Any, fit: bool) -> None:
    """Equal weights, that cost .9 of the loss at 0; and two rows near a corner, which the intercept must tell apart."""
    if fit:
        rows, labels, radius = np.array([[1.0] * 4, [17 / 18] * 4]), np.array([1.0, -1.0]), 0.05
    else:
        rows, labels, radius = np.full((2, 4), 1 / 12), np.ones(2), 0.3
    site = SiteProblem(rows, labels, RobustSpec(radius, math.inf, norm, None, fit))
    best = np.append(np.full(4, 9.0), -35.0) if fit else np.full(4, 3.0)
    assert site_risk(best, site).value == pytest.approx(0.9)
    assert train({"a": site}, gap=1e-6).certificate.lower == pytest.approx(0.9, rel=1e-5)
    problem = server_problem({"a": site}, None, get_method(METHOD), {}, 1e-3)
    found = norm_of_optimum(problem, get_loss("hinge"))
    assert point_within(best, found).tolist() == best.tolist() and found < 1.2 * np.linalg.norm(best)


def test_best_weights_of_one_class_are_an_intercept_alone_and_lie_within_the_norm() -> None:
    """A large radius leaves no room for a slope, and the intercept goes to 1 all the same."""
    site = SiteProblem(np.full((2, 4), 0.5), np.ones(2), RobustSpec(10.0, math.inf))
    assert site_risk(np.array([0.0, 0.0, 0.0, 0.0, 1.0]), site).value == 0.0
    problem = server_problem({"a": site}, None, get_method(METHOD), {}, 1e-3)
    assert 1.0 <= norm_of_optimum(problem, get_loss("hinge")) < 1.5


@pytest.mark.parametrize("count", [1, 10])
def test_walls_outweigh_any_mean_loss_by_the_weight_of_their_cohort(count: int) -> None:
    """They stand with one of many cohorts, of which a tenth of the risk is."""
    site = SiteProblem(np.eye(3), np.ones(3), RobustSpec(0.02, 1.0))
    problem = server_problem({f"cohort-{k}": site for k in range(count)}, None, get_method(METHOD), {}, 1e-3)
    walls = walled(Evidence.empty(problem), problem, get_loss("hinge"), 6.0)
    (place,) = set(walls.cut_site.astype(int))
    np.testing.assert_allclose(np.abs(walls.cut_slope).max(axis=1) * problem.weights[place], 8.0 * 2.0)
    for wall, offset in zip(walls.cut_slope, walls.cut_offset, strict=True):
        reached = 6.0 * np.sign(wall)
        assert offset + wall @ reached == pytest.approx(0.0), "0 at the end of the norm, and below within it"


def test_a_risk_that_noise_drew_below_what_the_norm_costs_is_that() -> None:
    site, plan = SiteProblem(np.eye(3), np.ones(3), RobustSpec(0.02, 1.0)), NoisePlan(50.0, 1e-5, 0.95, 4, 6.0)
    sites = dict.fromkeys(("a", "b", "c"), site)
    problem = server_problem(sites, None, get_method(METHOD), {}, 1e-3)
    point, shares = np.array([3.0, -2.0, 1.0, 0.0]), dict.fromkeys(sites, 1 / 3)
    terms = NoiseTerms(1 / 300, 3, plan.rho)

    def answered(deviations: float) -> dict[str, Any]:
        """Of a risk that was drawn so many deviations below 0."""
        low = -deviations * sigmas(point, 3, get_loss("hinge"), terms)["risk"] * math.sqrt(3)
        words = np.full(6, round(low)).astype(np.int64).view(np.uint64)
        return bounded_answer(
            words, point, problem, get_loss("hinge"), plan, terms, shares, dict.fromkeys(sites, 0.02), complete=True
        )

    for deviations in (1.0, 1.9 * plan.deviations):
        assert answered(deviations)["risk"] == pytest.approx(0.02 * math.sqrt(14))
    with pytest.raises(NeverNoiseError, match="noise is .* of it at most, and no risk is below 0"):
        answered(2.1 * plan.deviations)


@pytest.mark.parametrize("count", [3, 5])
def test_bounds_allow_for_the_noise_of_all_that_are_in_a_sum_and_for_every_rounding(count: int) -> None:
    """More plants than the noise needs make more of it; what is said of a bound is worked out here once more."""
    names, point, plan = [f"plant-{k}" for k in range(count)], np.array([3.0, -2.0, 1.0, 0.5]), NoisePlan(
        50.0, 1e-5, 0.95, 4, 6.0, heads=2, cohorts=3
    )
    problem = server_problem(
        {name: SiteProblem(np.eye(3), np.ones(3), RobustSpec(0.02, 1.0)) for name in names}, None, get_method(METHOD),
        {}, 1e-3,
    )
    loss, terms = get_loss("hinge"), NoiseTerms(1 / 300, 3, plan.rho)
    told = np.array([2.0, 0.75, 0.1, -0.2, 0.3, -0.4])
    words = np.rint(np.ldexp(told, BITS)).astype(np.int64).view(np.uint64)
    found = bounded_answer(
        words, point, problem, loss, plan, terms, dict.fromkeys(names, 1 / count), dict.fromkeys(names, 0.02),
        complete=True,
    )
    one = {name: math.ldexp(sigma, -BITS) for name, sigma in sigmas(point, 3, loss, terms).items()}
    # One of two events of each round, head and cohort of the plan: a risk drawn too low, a plane too high.
    times = math.sqrt(2.0 * math.log(2 * 4 * 2 * 3 / 0.05)) * math.sqrt(count)
    rounded = count * 2.0**-33 * (1.0 + math.sqrt(4) * 6.0) + 2.0**-36
    floor = 0.02 * math.sqrt(14)
    offset = float(found["cut_height"] - found["slope"] @ point) - floor
    lowered = 0.75 - times * math.hypot(one["offset"], 6.0 * one["slope"]) - rounded
    assert offset == pytest.approx(lowered, rel=0.0, abs=5e-12)
    assert float(found["risk"]) == pytest.approx(2.0 + times * one["risk"] + rounded, rel=0.0, abs=5e-12)


@pytest.mark.parametrize("shape", [(0,), (5,), (7,), (12,), (1, 6), (6, 1)])
def test_a_sum_of_another_number_of_words_is_refused_and_none_is_left_out(shape: tuple[int, ...]) -> None:
    plan, names = NoisePlan(50.0, 1e-5, 0.95, 4, 6.0), ("a", "b", "c")
    problem = server_problem(
        dict.fromkeys(names, SiteProblem(np.eye(3), np.ones(3), RobustSpec(0.02, 1.0))), None, get_method(METHOD), {},
        1e-3,
    )
    shares, radii = dict.fromkeys(names, 1 / 3), dict.fromkeys(names, 0.02)
    with pytest.raises(ProblemError, match="a sum of 6 words was due, got"):
        bounded_answer(
            np.zeros(shape, np.uint64), np.ones(4), problem, get_loss("hinge"), plan, NoiseTerms(1 / 300, 3, plan.rho),
            shares, radii, complete=True,
        )


def test_noise_that_all_plants_answers_might_not_hold_beside_is_refused() -> None:
    """Ten standard deviations of a thousand plants' sum stay within a word: one that ran over would be any number."""
    point, loss = np.array([3.0, -2.0, 1.0, 0.5]), get_loss("hinge")
    most = max(sigmas(point, 3, loss, NoiseTerms(1 / 300, 1, 1.0)).values())
    for size, fits in ((0.99, True), (1.01, False)):
        terms = NoiseTerms(1 / 300, 1, (most / (size * 2.0**56)) ** 2)
        if fits:
            assert max(sigmas(point, 3, loss, terms).values()) == pytest.approx(size * 2.0**56)
            continue
        with pytest.raises(ProblemError, match="the noise does not fit into a sum"):
            sigmas(point, 3, loss, terms)
