"""A step of consensus ADMM by hand: the mean of what is known, and the duals of the sites that answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from models.basics import Arrays, ProblemError
from models.methods.catalogue import get_method
from models.methods.splitting.consensus_admm import AdmmServer, smallest_ridge
from models.problem import ServerProblem, SiteTerms
from models.simulation.federation import FIXED, server_problem
from tests.models.methods.splitting.drawn import drawn_sites


def test_an_absent_site_of_admm_keeps_its_weights_and_its_dual() -> None:
    """It enters the mean by what it last told, and only the duals of those that answered move."""
    sites, method, server = drawn_sites(), get_method("fdr-admm"), AdmmServer()
    problem = server_problem(sites, None, method, {}, 1e-3, FIXED)
    random = np.random.default_rng(1)
    state = replace(server.init(problem), local=random.normal(size=(3, 3)), dual=random.normal(size=(3, 3)))
    messages = server.messages(state, problem)
    for g, name in enumerate(sites):
        np.testing.assert_allclose(messages[name]["centre"], state.point - state.dual[g])
    answers: Mapping[str, Arrays] = {
        k: method.site.answer(sites[k], messages[k], problem.parameters) for k in ("site-0", "site-2")
    }
    moved = server.step(state, problem, answers)
    local = np.stack([answers["site-0"]["local_point"], state.local[1], answers["site-2"]["local_point"]])
    point = (local + state.dual).mean(axis=0)
    dual = state.dual + local - point
    dual[1] = state.dual[1]
    np.testing.assert_allclose(moved.point, point)
    np.testing.assert_allclose(moved.dual, dual)
    np.testing.assert_array_equal(moved.local[1], state.local[1])


def problem_of(*weights: float, **parameters: float) -> ServerProblem:
    terms = tuple(SiteTerms(f"site-{g}", weight, 0.1, 1.0) for g, weight in enumerate(weights))
    return ServerProblem(2, terms, "l2", True, parameters=parameters)


@pytest.mark.parametrize("weights", [(0.25,) * 4, (0.5, 0.3, 0.2), (0.1, 0.2, 0.7), (0.5, 0.5), (0.6, 0.4)])
def test_the_smallest_ridge_is_the_least_that_theorem_3_allows(weights: tuple[float, ...]) -> None:
    """By its two conditions as they stand: met with equality at one site at least, and by no smaller one."""
    count, rho = len(weights), 0.3
    ridge = smallest_ridge(problem_of(*weights), rho)

    def most(tau: float) -> float:
        first = [4 * weights[g - 1] * tau / (g * (2 * count + 1 - g)) for g in range(1, count)]
        return min([*first, 4 * weights[-1] * tau / ((count - 1) * (count + 2))])

    assert most(ridge) == pytest.approx(rho) and most(0.999 * ridge) < rho
    if weights == (0.25,) * 4:
        assert ridge == pytest.approx(18 * rho)


def test_a_ridge_is_that_of_the_plan_or_the_smallest_and_of_plain_admm_none() -> None:
    given = {"rho": 0.1, "mu0": 1.0}
    for strongly, tau, ridge in ((False, 0.5, 0.0), (True, 0.5, 0.5), (True, 0.0, 1.8)):
        server, problem = AdmmServer(strongly), problem_of(*(0.25,) * 4, **given, tau=tau)
        state = server.init(problem)
        asked = server.messages(state, problem)["site-2"]
        assert float(asked["ridge"]) == pytest.approx(ridge) and float(asked["penalty"]) == 0.1
        assert (state.dual == 1.0).all() and (asked["centre"] == -1.0).all() and not asked["point"].any()
    assert smallest_ridge(problem_of(1.0), 0.1) == 0.0
    with pytest.raises(ProblemError, match="needs every site weight above 0"):
        smallest_ridge(problem_of(1.0, 0.0), 0.1)


def test_weights_of_the_sites_weigh_the_mean() -> None:
    server, problem = AdmmServer(), problem_of(0.7, 0.2, 0.1, rho=0.1, mu0=1.0)
    random = np.random.default_rng(1)
    state = replace(server.init(problem), local=random.normal(size=(3, 3)), dual=random.normal(size=(3, 3)))
    moved = server.step(state, problem, {})
    np.testing.assert_allclose(moved.point, np.array([0.7, 0.2, 0.1]) @ (state.local + state.dual))
    assert (moved.dual == state.dual).all() and (moved.local == state.local).all()
