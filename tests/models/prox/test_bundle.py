"""The local bundle against the fast prox solver, against CVXPY, and against its own promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import FloatArray, TransportNorm
from models.geometry.norms import dual_norm
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.site_answers import ProxCutSite
from models.problem import RobustSpec, SiteProblem
from models.prox.bundle import LocalStep, RiskPenalty, _mixed, fast_prox_fits, local_minorant, local_prox, local_step
from models.prox.hinge import robust_prox
from models.worst_case.risk import site_risk

QUICK = settings(max_examples=20, derandomize=True)
LOSSES = ["hinge", "smooth_hinge", "logistic", "huber", "epsilon_insensitive", "pinball"]


def drawn_site(seed: int, loss: str, norm: TransportNorm, box: bool = False, n: int = 12, p: int = 3) -> SiteProblem:
    random = np.random.default_rng(seed)
    judged = get_loss(loss)
    features = random.uniform(size=(n, p))
    labels = random.choice([-1.0, 1.0], n) if judged.task == "classification" else random.uniform(size=n)
    support = BoxSupport(np.zeros(p), np.ones(p)) if box else None
    return SiteProblem(features, labels, RobustSpec(0.05, 1.0, norm, support, True, judged))


def check(step: LocalStep, site: SiteProblem, centre: FloatArray, height: RiskPenalty, seed: int) -> None:
    """Value, risk and minorant are what they are said to be."""
    assert step.risk == pytest.approx(site_risk(step.point, site).value, rel=1e-12, abs=1e-12)
    away = step.point - centre
    assert step.value == pytest.approx(height.cost(step.risk) + 0.5 * float(away @ away), rel=1e-10, abs=1e-12)
    assert 0 <= step.gap <= 1e-9 * max(step.value, 1e-3)
    assert (step.swing is None) == (site.spec.support is None), "its answer has other arrays than a cut on a box"
    random, p = np.random.default_rng(seed), site.features.shape[1]
    for scale in (0.0, 0.3, 5.0):
        u = step.point + scale * random.normal(size=centre.size)
        minorant = step.offset + step.slope @ u + step.norm_weight * dual_norm(u[:p], site.spec.transport_norm)
        minorant += 0.0 if step.swing is None else step.swing @ np.abs(u[:p])
        assert minorant <= site_risk(u, site).value + 1e-9 * (1 + abs(minorant))


@QUICK
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(LOSSES),
    norm=st.sampled_from(["l1", "l2", "linf"]),
    height=st.sampled_from(
        [RiskPenalty(0.2), RiskPenalty(30.0), RiskPenalty(-0.3, 1.0), RiskPenalty(-2.0, 50.0), RiskPenalty(1.0, 0.5)]
    ),
)
def test_step_is_proved_for_every_loss(seed: int, loss: str, norm: TransportNorm, height: RiskPenalty) -> None:
    site = drawn_site(seed, loss, norm)
    centre = np.random.default_rng(seed + 1).normal(size=4)
    check(local_step(site, centre, height), site, centre, height, seed)


@QUICK
@given(seed=st.integers(0, 10**6), norm=st.sampled_from(["l1", "l2", "linf"]), size=st.sampled_from([0.1, 1.0, 20.0]))
def test_prox_step_is_that_of_the_fast_solver(seed: int, norm: TransportNorm, size: float) -> None:
    site = drawn_site(seed, "hinge", norm)
    centre = np.random.default_rng(seed + 1).normal(size=4)
    step, fast = local_step(site, centre, RiskPenalty(size)), robust_prox(site, centre, 1 / size)
    assert step.value / size == pytest.approx(fast.value, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "pinball"])
@pytest.mark.parametrize("height", [RiskPenalty(3.0), RiskPenalty(-0.2, 10.0)])
def test_box_step_is_that_of_cvxpy(loss: str, height: RiskPenalty) -> None:
    cp = pytest.importorskip("cvxpy", reason="the oracle needs the extra 'reference'")
    from tests.oracles.worst_case import risk_model

    site = drawn_site(3, loss, "linf", box=True)
    centre = np.array([0.7, -1.0, 0.4, 0.2])
    step = local_step(site, centre, height)
    check(step, site, centre, height, 3)
    weights, over = cp.Variable(4), cp.Variable()
    risk, constraints = risk_model(weights, site)
    base = height.base if height.curvature > 0 else 0.0
    cost = 0.5 * height.curvature * cp.square(over) if height.curvature > 0 else height.linear * over
    objective = cost + 0.5 * cp.sum_squares(weights - centre)
    constraints = [*constraints, over >= risk - base, over >= 0]
    program = cp.Problem(cp.Minimize(objective), constraints)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    assert step.value == pytest.approx(float(program.value), rel=1e-7, abs=1e-8)


def test_one_row_and_a_start_that_is_the_answer() -> None:
    site = drawn_site(1, "hinge", "l2", n=1)
    centre, height = np.zeros(4), RiskPenalty(-0.1, 2.0)
    cold = local_step(site, centre, height)
    warm = local_step(site, centre, height, start=cold.point)
    assert warm.value == pytest.approx(cold.value, rel=1e-9)
    assert warm.cuts <= cold.cuts


def test_a_risk_below_the_target_costs_nothing() -> None:
    site = drawn_site(2, "huber", "l2")
    centre = np.zeros(4)
    step = local_step(site, centre, RiskPenalty(-100.0, 1.0))
    np.testing.assert_array_equal(step.point, centre)
    assert step.value == 0 and step.gap == 0


@pytest.mark.parametrize("loss", ["logistic", "pinball"])
def test_a_prox_step_with_a_ridge_is_the_least_of_its_three_parts(loss: str) -> None:
    site, centre, penalty, ridge = drawn_site(3, loss, "l2"), np.array([1.0, -2.0, 0.5, 0.3]), 0.7, 0.4

    def objective(point: FloatArray) -> float:
        away = point - centre
        return site_risk(point, site).value + ridge * float(point @ point) + 0.5 * penalty * float(away @ away)

    found, random = local_prox(site, centre, penalty, ridge=ridge).point, np.random.default_rng(4)
    least = objective(found)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for step in random.normal(size=(20, 4)):
            # strongly convex: away from its minimum it is higher by half the curvature times the square
            rise = 0.5 * (penalty + 2 * ridge) * size**2 * float(step @ step)
            assert objective(found + size * step) >= least + rise - 1e-7


def test_a_cost_of_heights_and_its_conjugate_by_hand() -> None:
    straight, bent = RiskPenalty(2.0), RiskPenalty(-1.0, 4.0)  # 2 t; 2 t^2 - t, least at 1/4
    assert (straight.cost(3.0), straight.conjugate(2.0), straight.base) == (6.0, 0.0, -np.inf)
    assert (bent.base, bent.cost(0.0), bent.cost(0.25), bent.cost(1.25)) == (0.25, 0.0, 0.0, 2.0)
    heights = np.linspace(-5.0, 5.0, 200001)
    for total in (0.0, 0.5, 3.0):
        most = (total * heights - 2.0 * np.square(heights - 0.25)).max()  # beyond the base, where it rises
        assert bent.conjugate(total) == pytest.approx(float(most), abs=1e-8)


def test_the_fast_step_is_for_hinge_rows_that_count_once_and_have_no_walls() -> None:
    site = drawn_site(1, "hinge", "l2")
    assert fast_prox_fits(site)
    for other in (drawn_site(1, "logistic", "l2"), drawn_site(1, "hinge", "l2", True)):
        assert not fast_prox_fits(other)
    assert not fast_prox_fits(replace(site, row_weights=np.ones(12)))


@pytest.mark.parametrize("weighted", [True, False])
def test_an_answers_minorant_is_below_the_risk_of_rows_as_often_as_they_count(weighted: bool) -> None:
    """And near it where its step ends."""
    random, site = np.random.default_rng(5), drawn_site(5, "hinge", "l2")
    if weighted:
        often = random.uniform(0.1, 3.0, 12)
        site = replace(site, row_weights=often / often.mean())
    message = {"point": np.array([1.0, -1.0, 0.5, 0.2]), "centre": random.normal(size=4), "penalty": np.array(0.3)}
    found, ratios = ProxCutSite().answer(site, message, {}), []
    for u in random.normal(size=(200, 4)):
        minorant = float(found["minorant_offset"] + found["minorant_slope"] @ u)
        minorant += float(found["minorant_norm_weight"]) * dual_norm(u[:3], "l2")
        assert minorant <= site_risk(u, site).value + 1e-9
        ratios.append(minorant / site_risk(u, site).value)
    assert max(ratios) > 0.9


def test_rows_of_a_proof_make_its_slope_or_are_not_known() -> None:
    """Of a classification without walls a slope is a sum over the rows; of one cut without rows nothing is."""
    site = drawn_site(4, "logistic", "l2")
    step = local_minorant(site, np.array([1.0, -2.0, 0.5, 0.3]), 0.2)
    assert step.rows is not None
    np.testing.assert_allclose(np.append(step.rows @ site.features, step.rows.sum()), step.slope, atol=1e-12)
    shares, known = np.array([0.25, 0.75]), [np.array([1.0, 0.0]), np.array([0.0, 2.0])]
    mixed = _mixed(shares, known)
    assert mixed is not None and mixed.tolist() == [0.25, 1.5]
    assert _mixed(shares, [known[0], None]) is None and _mixed(shares, [None, None]) is None


def test_the_proven_point_is_where_the_bounds_own_step_ends() -> None:
    """Near the solution by the gap, however rough the step is."""
    site, centre = drawn_site(3, "hinge", "l2"), np.array([1.0, -2.0, 0.5, 0.3])
    exact = local_prox(site, centre, 0.5)
    for most in (1, 2, 4, 8):
        rough = local_step(site, centre, RiskPenalty(2.0), max_cuts=most)
        assert rough.proven_point is not None and rough.cuts == most
        away = rough.proven_point - exact.point
        assert 0.5 * float(away @ away) <= rough.gap + 1e-9
        assert rough.value >= exact.value - 1e-9 >= rough.value - rough.gap - 2e-9
