"""What the server makes of noisy sums where no draw is left to luck: the norm of the best weights, a risk drawn low."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from models.cohorts.noise import METHOD, NoisePlan, NoiseTerms, sigmas
from models.cohorts.noisy_bounds import NeverNoiseError, bounded_answer, norm_of_optimum, point_within
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
