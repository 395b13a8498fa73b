"""AD-LPMM: the optimum of the whole problem, step sizes, drawn rows, residuals, absent sites."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError, TransportNorm
from models.geometry.supports import PolytopeSupport
from models.losses.catalogue import get_loss
from models.methods.catalogue import get_method
from models.methods.splitting.ad_lpmm import DrflServer, DrflState
from models.methods.splitting.ad_lpmm_operators import EVERY, LAST, first_sizes
from models.problem import Status
from models.simulation.federation import Training, server_problem, train
from models.site_ambiguity.ball import MixtureBall, MixtureNorm
from tests.models.methods.splitting.drawn import Sites, drawn_sites

LOSSES = ["hinge", "smooth_hinge", "logistic", "huber", "epsilon_insensitive", "pinball"]
SIZES = {"c": 3.0, "c_weights": 0.03}
"""Step sizes for the tests that leave nothing to the data."""


def whole_optimum(sites: Sites, ball: MixtureBall) -> float:
    pytest.importorskip("cvxpy", reason="the oracle needs the extra 'reference'")
    from tests.oracles.whole_problem import solve_whole

    return solve_whole(list(sites.values()), None, ball).value


def check_optimum(run: Training, best: float) -> None:
    """Bounds on both sides of the optimum, the upper one at it."""
    assert run.certificate.lower <= best * (1 + 1e-7) + 1e-9
    assert run.certificate.upper >= best * (1 - 1e-7) - 1e-9
    assert run.certificate.upper == pytest.approx(best, rel=1e-5)


@settings(max_examples=10, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(LOSSES),
    norm=st.sampled_from(["l1", "l2", "linf"]),
    p=st.sampled_from(["l1", "l2", "linf"]),
    theta=st.sampled_from([0.0, 0.1, 0.4, 2.0]),
    box=st.booleans(),
    count=st.integers(1, 4),
    unit=st.sampled_from([1e-2, 1.0, 1e3]),
)
def test_reaches_the_optimum_of_the_whole_problem(
    seed: int, loss: str, norm: TransportNorm, p: MixtureNorm, theta: float, box: bool, count: int, unit: float
) -> None:
    """By default, for every loss, norm, ball over the sites and support, for targets of any size."""
    lines = get_loss(loss).lines is not None
    sites = drawn_sites(loss, norm, box=box and lines, seed=seed, rows=10, count=count, unit=unit)
    ball = MixtureBall(p, theta)
    run = train(sites, method="drfl-admm", gap=1e-6, max_rounds=600, mixture=ball)
    assert run.status is Status.CERTIFIED
    check_optimum(run, whole_optimum(sites, ball))


@pytest.mark.parametrize(("loss", "norm"), [("hinge", "l2"), ("pinball", "l1"), ("epsilon_insensitive", "linf")])
def test_reaches_the_optimum_on_a_polytope(loss: str, norm: TransportNorm) -> None:
    sites, ball = drawn_sites(loss, norm, rows=6, count=2), MixtureBall("l2", 0.3)
    walls = np.vstack([np.eye(3), -np.eye(3), [[1.0, 1.0, 0.0]]])
    limits = np.array([1.0, 1.0, 3.0, 0.0, 0.0, 3.0, 2.2])
    target = None if get_loss(loss).task == "classification" else walls[:, 2]
    keep = slice(None) if target is not None else [0, 1, 3, 4, 6]
    place = PolytopeSupport(walls[keep, :2], limits[keep], target)
    sites = {name: replace(site, spec=replace(site.spec, support=place)) for name, site in sites.items()}
    run = train(sites, method="drfl-admm", gap=5e-6, max_rounds=80, mixture=ball)
    check_optimum(run, whole_optimum(sites, ball))


@pytest.mark.parametrize(("loss", "theta"), [("huber", 0.4), ("logistic", 0.2), ("hinge", 2.0)])
def test_the_iterates_alone_reach_the_optimum(loss: str, theta: float) -> None:
    sites, ball = drawn_sites(loss, count=2), MixtureBall("l2", theta)
    run = train(sites, method="drfl-admm", parameters={"probe": 0}, gap=5e-6, max_rounds=600, mixture=ball)
    check_optimum(run, whole_optimum(sites, ball))


def test_probes_leave_the_iterates_as_they_are() -> None:
    sites, method = drawn_sites("hinge"), get_method("drfl-admm")
    points = []
    for probe in (0.0, 2.0):
        problem = server_problem(sites, None, method, {"probe": probe}, 1e-3, MixtureBall("l2", 0.3))
        server = DrflServer()
        state = server.init(problem)
        for _ in range(8):
            messages = server.messages(state, problem)
            answers = {name: method.site.answer(sites[name], messages[name], problem.parameters) for name in sites}
            state = server.step(state, problem, answers)
        points.append(state.point)
        assert np.array_equal(state.probe, state.point) == (probe == 0)
    np.testing.assert_allclose(points[0], points[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("probe", [0.0, 2.0])
def test_targets_in_other_units_take_as_many_rounds(probe: float) -> None:
    rounds = [
        train(
            drawn_sites("pinball", unit=unit), method="drfl-admm", parameters={"probe": probe}, gap=1e-3,
            mixture=MixtureBall("l2", 0.3),
        ).n_rounds
        for unit in (1e-3, 1.0, 1e4)
    ]
    assert max(rounds) - min(rounds) <= 2 and max(rounds) < 200


def test_first_sizes_are_in_the_units_of_the_data() -> None:
    answers = {"a": {"risk": np.array(2.0), "slope": np.array([3.0, 4.0])}}
    np.testing.assert_allclose(first_sizes(answers, 4), [1 / 8, 25 / 8])
    flat = {"a": {"risk": np.array(0.0), "slope": np.zeros(2)}}
    np.testing.assert_allclose(first_sizes(flat, 2), [0.5, 0.5])


def test_sizes_come_from_the_sites_that_are_there_and_stand_in_the_end() -> None:
    sites, method = drawn_sites("smooth_hinge", count=2, rows=5), get_method("drfl-admm")
    problem = server_problem(sites, None, method, {"probe": 0.0}, 0.0, MixtureBall("l2", 0.3))
    server = DrflServer()
    state = server.init(problem)

    def after(state: DrflState, here: list[str]) -> DrflState:
        messages = server.messages(state, problem)
        return server.step(
            state, problem, {k: method.site.answer(sites[k], messages[k], problem.parameters) for k in here}
        )

    state = after(state, [])
    assert not state.sized
    state = after(state, ["site-1"])
    assert state.sized and state.local.risks[0] == state.local.risks[1] > 0
    changes = []
    for number in range(3, LAST + 2 * EVERY):
        before, state = state.sizes, after(state, list(sites))
        if not np.array_equal(before, state.sizes):
            changes.append(number)
    assert changes and all(number % EVERY == 0 and number <= LAST for number in changes)


def test_the_papers_constant_ends_at_the_same_optimum() -> None:
    sites, ball = drawn_sites("smooth_hinge"), MixtureBall("l2", 0.3)
    runs = [
        train(sites, method="drfl-admm", parameters={"tight": tight, "probe": 0.0}, gap=1e-3, mixture=ball)
        for tight in (0.0, 1.0)
    ]
    assert all(run.status is Status.CERTIFIED for run in runs)
    assert runs[0].certificate.upper == pytest.approx(runs[1].certificate.upper, rel=2e-3)


def test_drawn_rows_leave_the_certificate_exact() -> None:
    sites, ball = drawn_sites("logistic", rows=120), MixtureBall("l2", 0.2)
    best = whole_optimum(sites, ball)
    run = train(sites, method="drfl-admm", parameters={"batch": 0.4}, max_rounds=20, mixture=ball)
    for number in run.history:
        assert number.lower <= best * (1 + 1e-7) and number.upper >= best * (1 - 1e-7)
    assert run.history[-1].upper <= 1.05 * best


def test_small_residuals_stop_a_run_and_mean_optimality() -> None:
    sites = drawn_sites("smooth_hinge")
    run = train(
        sites, method="drfl-admm", parameters={"residual": 3e-3, "probe": 0.0}, gap=0.0, max_rounds=300,
        mixture=MixtureBall("l2", 0.3),
    )
    assert run.status is Status.SMALL_RESIDUALS and run.n_rounds > 5
    assert run.certificate.gap < 3e-2


def test_a_certified_run_is_called_that_whatever_its_residuals_are() -> None:
    sites, method, server = drawn_sites("smooth_hinge"), get_method("drfl-admm"), DrflServer()
    problem = server_problem(sites, None, method, SIZES, 1e-3, MixtureBall("l2", 0.3))
    state = server.init(problem)
    for _ in range(4):
        messages = server.messages(state, problem)
        state = server.step(
            state, problem, {k: method.site.answer(sites[k], messages[k], problem.parameters) for k in sites}
        )
    small = dict(problem.parameters) | {"residual": 2.0 * float(state.residuals.max())}
    gap = server.certificate(state).gap
    assert server.status(state, replace(problem, gap=1.01 * gap, parameters=small)) is Status.CERTIFIED
    assert server.status(state, replace(problem, gap=0.5 * gap, parameters=small)) is Status.SMALL_RESIDUALS


def test_an_absent_site_keeps_its_last_answer() -> None:
    sites, method = drawn_sites("smooth_hinge"), get_method("drfl-admm")
    problem = server_problem(sites, None, method, SIZES, 1e-3, MixtureBall("l2", 0.3))
    server = DrflServer()

    def after(state: DrflState, here: set[str]) -> DrflState:
        messages = server.messages(state, problem)
        return server.step(
            state, problem, {k: method.site.answer(sites[k], messages[k], problem.parameters) for k in here}
        )

    state = server.init(problem)
    for _ in range(3):
        state = after(state, set(sites))
    next_state = after(state, {"site-0", "site-2"})
    np.testing.assert_array_equal(next_state.local.weights[1], state.local.weights[1])
    np.testing.assert_array_equal(next_state.duals.psi[1], state.duals.psi[1])
    assert next_state.local.risks[1] == state.local.risks[1] and next_state.duals.zeta[1] == state.duals.zeta[1]
    assert not np.array_equal(next_state.duals.psi[0], state.duals.psi[0])
    assert next_state.evidence.fresh_weight == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("given_parameters", "text"),
    [
        ({"c": -1.0}, "parameter c of method drfl-admm must be at or above 0, got -1"),
        ({"c_weights": 1.0}, "c_weights goes with a c above 0"),
        ({"probe": 1.5}, "parameter probe of method drfl-admm must be a whole number at or above 0"),
        ({"batch": 1.5}, "parameter batch of method drfl-admm must be above 0 and at most 1, got 1.5"),
        ({"residual": -1.0}, "parameter residual of method drfl-admm must be at or above 0, got -1"),
        ({"c_weights": math.inf}, "parameter c_weights of method drfl-admm must be at or above 0"),
    ],
)
def test_refused_in_one_line(given_parameters: dict[str, float], text: str) -> None:
    with pytest.raises(ProblemError) as refusal:
        train(drawn_sites(), method="drfl-admm", parameters=given_parameters)
    assert text in str(refusal.value) and "\n" not in str(refusal.value)
