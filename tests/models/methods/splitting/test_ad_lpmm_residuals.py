"""AD-LPMM's residuals, step sizes and messages by their definitions: the Lagrangian, and ratios by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.cuts.evidence import Evidence
from models.methods.catalogue import get_method
from models.methods.splitting.ad_lpmm import DrflServer, DrflState
from models.methods.splitting.ad_lpmm_operators import (
    Duals,
    Heights,
    Local,
    Steps,
    balanced,
    consensus,
    first_sizes,
    move_duals,
    move_heights,
    residuals,
)
from models.methods.splitting.ad_lpmm_site import sampled_rows
from models.problem import ServerProblem, Status
from models.simulation.federation import FIXED, server_problem
from tests.models.methods.splitting.drawn import drawn_sites

COUNT, WIDTH = 4, 3


@pytest.mark.parametrize("tight", [True, False])
def test_residuals_are_what_the_constraints_and_the_gradient_of_the_lagrangian_miss(tight: bool) -> None:
    """Without a ball, and eta above 0 everywhere, ``q't - gamma`` and all multipliers' terms are smooth."""
    random, q = np.random.default_rng(6), np.array([0.1, 0.2, 0.3, 0.4])
    steps = Steps.of(1.7, 0.6, COUNT, tight=tight)
    t, z, eta = random.normal(size=(3, COUNT))
    before, was = Heights(t, z, np.abs(eta) + 5.0, 0.3), Local(*_local(random))
    duals = Duals(random.normal(size=COUNT), random.normal(size=(COUNT, WIDTH)), random.normal(size=COUNT))
    point = consensus(was, duals, steps)
    heights = move_heights(before, was, duals, steps, q, FIXED)
    local = Local(*_local(random))
    after = move_duals(duals, point, heights, local, steps, np.ones(COUNT))
    assert (heights.eta > 0).all()
    gradient = np.concatenate([
        after.psi.sum(axis=0), q + after.sigma, -after.sigma - after.zeta, -after.sigma, [-1.0 - after.sigma.sum()],
    ])
    missed = np.concatenate([
        heights.t - heights.z - heights.gamma - heights.eta, local.risks - heights.z, (point - local.weights).ravel(),
    ])
    found = residuals(point, heights, before, local, was, steps)
    assert found == pytest.approx((np.linalg.norm(missed), np.linalg.norm(gradient)), rel=1e-12)


def _local(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return random.normal(size=(COUNT, WIDTH)), random.uniform(0.5, 1.5, COUNT)


@pytest.mark.parametrize(("scale", "factor"), [(2.3, 2.3), (1 / 2.3, 1 / 2.3), (1.9, 1.0), (5.0, 3.0), (0.1, 1 / 3.0)])
@pytest.mark.parametrize("number", [10, 120, 15, 130])
def test_sizes_move_by_the_root_of_their_relative_residuals(scale: float, factor: float, number: int) -> None:
    """Only the risks and the weights moved: each residual is over what it is one of, and the root of the ratio counts.

    Two sites; heights stand, so of the dual residual the risks' change is left. ``scale`` is the root that is wanted.
    """
    steps, zero = Steps.of(2.0, 0.5, 2, tight=True), np.zeros(2)
    heights = Heights(zero, np.array([3.0, 4.0]), np.array([-3.0, -4.0]), 0.0)
    duals = Duals(np.array([3.0, 0.0]), np.array([[1.2], [1.6]]), np.array([0.0, 4.0]))
    risks, weights, point = np.array([3.0, 4.6]), np.array([[1.0], [1.6]]), np.array([1.5])
    tall, far = np.linalg.norm(risks), np.linalg.norm(point - weights)
    relative = 0.6 / tall * 5.0
    moved = np.array([relative / scale**2 / 2.0, 0.0])
    long = max(np.linalg.norm(weights), np.sqrt(2.0) * 1.5)
    shifted = np.array([[far / long * 2.0 / scale**2 / 0.5], [0.0]])
    local, before = Local(weights, risks), Local(weights - shifted, risks - moved)
    found = balanced(number, steps, point, (heights, heights), (local, before), duals)
    wanted = factor if number in (10, 120) else 1.0
    np.testing.assert_allclose(found, [2.0 * wanted, 0.5 * wanted], rtol=1e-12)


def test_first_sizes_are_by_the_mean_risk_and_the_largest_slope() -> None:
    answers = {
        "a": {"risk": np.array(1.0), "slope": np.array([3.0, 4.0])}, "b": {"risk": np.array(3.0), "slope": np.ones(2)},
    }
    np.testing.assert_allclose(first_sizes(answers, 4), [1 / 8, 25 / 8])


def _begun() -> tuple[DrflServer, ServerProblem, DrflState]:
    """A state of three sites in which every variable is something."""
    random, server = np.random.default_rng(2), DrflServer()
    problem = server_problem(drawn_sites(), None, get_method("drfl-admm"), {"c": 2.0, "c_weights": 0.5}, 1e-3, FIXED)
    duals = Duals(random.normal(size=3), random.normal(size=(3, 3)), random.normal(size=3))
    heights = Heights(random.normal(size=3), random.normal(size=3), random.normal(size=3), 0.2)
    return server, problem, replace(server.init(problem), duals=duals, heights=heights, point=random.normal(size=3))


def test_a_site_is_sent_its_prox_centre_and_its_target() -> None:
    server, problem, state = _begun()
    for s, message in enumerate(server.messages(state, problem).values()):
        np.testing.assert_allclose(message["centre"], state.point + state.duals.psi[s] / 0.5)
        assert message["target"] == pytest.approx(state.heights.z[s] - state.duals.zeta[s] / 2.0)
        assert message["stiffness"] == pytest.approx(4.0)


@pytest.mark.parametrize(("upper", "status"), [(1.9e-14, Status.STALLED), (2.1e-14, Status.CONTINUE)])
@pytest.mark.parametrize("away", [False, True])
def test_a_run_of_whose_first_risk_nothing_is_left_ends(upper: float, status: Status, away: bool) -> None:
    """Also where a site was not there at first: the largest risk that was told then is what is left of."""
    server, problem, state = _begun()
    empty = Evidence.empty(problem)
    told = np.array([[1.0, np.nan if away else 0.5, 2.0]])
    asked = {"points": np.zeros((1, 3)), "point_round": np.ones(1), "risks": told}
    evidence = replace(empty, **asked, best=0, upper=upper, lower=0.0, fresh_weight=1.0)
    assert server.status(replace(state, evidence=evidence), replace(problem, absolute_gap=0.0)) is status


def test_drawn_rows_are_the_share_rounded_up_and_twenty_at_least() -> None:
    site = drawn_sites(rows=200)["site-0"]
    drawn = [sampled_rows(site, batch, 1, least) for batch, least in ((0.301, 20), (0.01, 3), (0.2, 50))]
    assert [None if rows is None else len(rows) for rows in drawn] == [61, 20, 50]
    few = drawn_sites(rows=20)["site-0"]
    assert sampled_rows(few, 0.5, 1) is None
