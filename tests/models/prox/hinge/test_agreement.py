"""The fast solvers against Clarabel, with CVXPY and without, and every answer against an exact judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from models.problem import RobustSpec, SiteProblem
from models.prox.hinge import robust_prox
from tests.oracles.prox import hinge_value, reference_value

EXACT = 1e-8
"""Wanted agreement, relative to the objective (to a hundredth where the objective is less)."""


def bounded_price(problem: SiteProblem) -> SiteProblem:
    """The same problem; without a radius flips are free and worth nothing, and saying so bounds their price."""
    spec = problem.spec
    spec = replace(spec, label_flip_cost=np.inf) if spec.radius == 0.0 else spec
    return SiteProblem(problem.features, problem.labels, spec)


@settings(max_examples=600, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_objective_agrees_with_the_reference(steps, objective, data):
    step = data.draw(steps)
    found = robust_prox(step.problem, step.centre, step.penalty, ridge=step.ridge, warm_start=step.warm_start)
    scale = max(abs(found.value), 1e-2)
    # the answer proves itself: its objective is what the exact worst case says, and its lower bound is as high
    exact = objective(found.point, step.problem, step.centre, step.penalty, step.ridge)
    assert abs(found.value - exact) <= 0.1 * EXACT * scale
    assert -1e-12 * scale <= found.gap <= EXACT * scale
    reference = hinge_value(bounded_price(step.problem), step.centre, step.penalty, step.ridge)
    assert found.value <= reference + EXACT * scale
    event("agrees" if reference - found.value <= EXACT * scale else "the reference stopped early")
    if reference - found.value > EXACT * scale:
        # the point that the exact judge confirms is better than the reference's: it is the reference that stopped early
        assert exact < reference - 0.5 * EXACT * scale


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_both_references_agree(steps, data):
    step = data.draw(steps)
    problem = bounded_price(step.problem)
    by_hand = hinge_value(problem, step.centre, step.penalty, step.ridge)
    modelled = reference_value(problem, step.centre, step.penalty, step.ridge)
    # where one of them stops early it is by hardly more than this; both work with terms as large as the step's at zero
    at_zero = 0.5 * step.penalty * float(step.centre @ step.centre)
    assert abs(by_hand - modelled) <= 1e-6 * max(abs(modelled), at_zero, 1e-2)


def test_reference_prefers_settings_with_which_it_is_done():
    # with the first ones Clarabel ends here 3e-5 below the optimum, and says that it is almost solved
    spec = RobustSpec(radius=0.0, label_flip_cost=np.inf, transport_norm="l1", fit_intercept=False)
    problem = SiteProblem(np.array([[0.0, 0.0], [-1.0, 0.0], [1.0, 1.0]]), np.array([1.0, 1.0, -1.0]), spec)
    assert abs(hinge_value(problem, np.zeros(2), 1e-3, 0.05) - (1.0 / 3.0 + 0.0505)) < 1e-10


def test_reference_answers_where_its_first_settings_fail():
    # a single far row and a dear flip: Clarabel with its own scaling ends here without an answer
    spec = RobustSpec(radius=1e-4, label_flip_cost=1e6)
    problem = SiteProblem(np.array([[0.4658521, -1.29266701, 8.60473138]]), np.array([1.0]), spec)
    centre = np.array([-2.39991502, -11.84795845, 5.71052943, 8.27394629])
    found = robust_prox(problem, centre, 100.0, ridge=1.0)
    for reference in (reference_value, hinge_value):
        assert abs(found.value - reference(problem, centre, 100.0, 1.0)) <= EXACT * found.value
