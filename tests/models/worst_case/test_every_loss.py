"""Worst-case risk of every loss on every support it has: against CVXPY, its cut, its price, and its special cases."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from models.basics import FloatArray
from models.geometry.norms import dual_norm
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.catalogue import LOSS_NAMES, get_loss
from models.problem import RobustSpec, SiteProblem
from models.validation import check_site_problem
from models.worst_case.risk import site_cut, site_risk, worst_case_risk
from tests.oracles.worst_case import reference_risk

pytest.importorskip("cvxpy", reason="the oracle of these tests needs the extra 'reference'")

Make = Callable[[tuple[str, ...], tuple[str, ...]], SearchStrategy[tuple[SiteProblem, FloatArray]]]
AGREED = 1e-7
ORACLE_ZERO = 1e-9  # what the oracle, an interior point method, may make of a risk that is 0
ROUNDING = 1e-10
PIECEWISE = ("hinge", "epsilon_insensitive", "pinball")
CASES = [
    (LOSS_NAMES, "free", 100), (("smooth_hinge", "logistic"), "free", 40),
    (("epsilon_insensitive", "pinball"), "box", 80), (PIECEWISE, "polytope", 40),
]


@pytest.mark.parametrize(("names", "kind", "count"), CASES)
def test_agrees_with_cvxpy_and_its_cut_holds(
    loss_problems: Make, names: tuple[str, ...], kind: str, count: int
) -> None:
    @settings(max_examples=count, derandomize=True)
    @given(data=st.data(), seed=st.integers(0, 2**32 - 1))
    def check(data: DataObject, seed: int) -> None:
        problem, weights = data.draw(loss_problems(names, (kind,)))
        check_site_problem(problem)
        here, cut = site_risk(weights, problem), site_cut(weights, problem)
        reference = reference_risk(weights, problem)
        assert abs(here.value - reference) <= AGREED * abs(reference) + ORACLE_ZERO, (here.value, reference)
        assert 0.0 <= cut.risk - cut.height <= 1e-8 * (abs(cut.risk) + 0.1)
        _cut_holds(problem, weights, np.random.default_rng(seed), 1 if kind == "polytope" else 4)

    check()


def _cut_holds(problem: SiteProblem, weights: FloatArray, random: np.random.Generator, points: int) -> None:
    here, cut = site_risk(weights, problem), site_cut(weights, problem)
    n_features, norm = problem.features.shape[1], problem.spec.transport_norm
    size = dual_norm(weights[:n_features], norm)
    assert 0.0 <= cut.norm_weight * size <= cut.risk + ROUNDING * (1 + cut.risk)
    swing = np.zeros(n_features) if cut.swing is None else cut.swing
    assert (swing >= 0).all() and (cut.swing is None) == (problem.spec.support is None or points == 1)
    others = [weights + step * random.normal(size=weights.shape) for step in (0.1, 20.0, 1e-5, 1.0)]
    for other in [*others, -weights][-points:]:
        there = site_risk(other, problem).value
        longer = dual_norm(other[:n_features], norm) - size
        plane = cut.height + here.subgradient @ (other - weights)
        sharper = cut.height + cut.slope @ (other - weights) + cut.norm_weight * longer
        sharper += swing @ (np.abs(other) - np.abs(weights))[:n_features]
        assert there >= sharper - ROUNDING * (1 + abs(there))
        assert sharper >= plane - ROUNDING * (1 + abs(plane))


@pytest.mark.parametrize(("names", "kind"), [(LOSS_NAMES, "free"), (("epsilon_insensitive", "pinball"), "box")])
def test_dual_is_the_price_of_radius(loss_problems: Make, names: tuple[str, ...], kind: str) -> None:
    @settings(max_examples=80, derandomize=True)
    @given(problem_and_weights=loss_problems(names, (kind,)))
    def check(problem_and_weights: tuple[SiteProblem, FloatArray]) -> None:
        problem, weights = problem_and_weights
        here = site_risk(weights, problem)
        for radius in (0.0, 0.5 * problem.spec.radius, problem.spec.radius + 0.1, 3 * problem.spec.radius + 1.0):
            there = site_risk(weights, replace(problem, spec=replace(problem.spec, radius=radius))).value
            bound = here.value + here.dual * (radius - problem.spec.radius)
            assert there <= bound + 1e-11 * (1 + abs(bound) + here.dual)

    check()


@settings(max_examples=40, derandomize=True)
@given(data=st.data())
def test_the_hinge_among_the_losses_is_the_hinge(loss_problems: Make, data: DataObject) -> None:
    """The formula for every loss and the saddle point of the hinge give the same risk."""
    from models.worst_case.unbounded import evaluate_classification

    problem, weights = data.draw(loss_problems(("hinge",), ("free",)))
    plane = weights[: problem.features.shape[1]]
    intercept = float(weights[-1]) if problem.spec.fit_intercept else 0.0
    other = evaluate_classification(plane, intercept, problem)
    assert other.value == pytest.approx(site_risk(weights, problem).value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kind", ["box", "polytope"])
@pytest.mark.parametrize("name", PIECEWISE)
def test_a_far_wall_is_no_wall(name: str, kind: str) -> None:
    random, loss = np.random.default_rng(3), get_loss(name)
    x, w = random.uniform(size=(12, 2)), np.array([1.0, -2.0, 0.3])
    y = random.uniform(size=12) if loss.task == "regression" else random.choice([-1.0, 1.0], 12)
    spec = RobustSpec(0.2, 0.4, "l2", None, True, loss)
    free = site_risk(w, SiteProblem(x, y, spec)).value
    targets = loss.task == "regression"
    far = 1e4
    if kind == "box":
        support: Any = BoxSupport(np.full(2, -far), np.full(2, far), -far, far)
    else:
        matrix = np.vstack([np.eye(3), -np.eye(3)]) if targets else np.vstack([np.eye(2), -np.eye(2)])
        column = matrix[:, 2] if targets else None
        support = PolytopeSupport(matrix[:, :2], np.full(matrix.shape[0], far), column)
    bounded = site_risk(w, SiteProblem(x, y, replace(spec, support=support))).value
    # One row moved very far comes near to what the free supremum only approaches.
    assert free * (1 - 1e-3) <= bounded <= free * (1 + 1e-8)


@pytest.mark.parametrize(
    ("features", "targets"),
    [([0.8, 0.1], [0.0, 5.55111512e-17]), ([0.8, 0.1], [0.0, 0.0]), ([5.55111512e-17, 0.0], [0.3, 0.4])],
)
def test_what_is_a_residue_of_rounding_is_no_unit(features: list[float], targets: list[float]) -> None:
    """Moving targets is nearly free here, so only the walls hold the risk; the solver must not be lost to the unit."""
    walls = np.vstack([np.eye(2), -np.eye(2)])
    support = PolytopeSupport(walls[:, :1], np.array([1.0, 1.0, 0.0, 0.0]), walls[:, 1])
    spec = RobustSpec(1e-4, 1e-9, "l1", support, False, get_loss("epsilon_insensitive", epsilon=0.0))
    problem = SiteProblem(np.array(features)[:, None], np.array(targets), spec)
    assert site_risk(np.zeros(1), problem).value == pytest.approx(1.0, rel=1e-6)


def test_one_program_a_site_that_goes_with_it() -> None:
    from models.reference import polytope

    support = PolytopeSupport(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
    problem = SiteProblem(np.zeros((3, 2)), np.array([1.0, -1.0, 1.0]), RobustSpec(3.0, 9.0, "l1", support))
    before = len(polytope._PROGRAMS)
    here, there = np.array([1.0, 1.0, 0.1]), np.array([-0.4, 2.0, 0.0])
    values = [site_risk(weights, problem).value for weights in (here, there, here, there)]
    assert values[:2] == values[2:]
    assert len(polytope._PROGRAMS) == before + 1
    del problem
    gc.collect()
    assert len(polytope._PROGRAMS) == before


def test_regression_by_hand() -> None:
    x, y = [[0.0, 0.0], [1.0, 1.0]], [0.5, 1.0]
    arguments: dict[str, Any] = {"radius": 0.1, "transport_norm": "l1", "loss": "huber"}
    # Residuals -0.5 and 1; the norm is 2, moving a target is worth 1 / 0.25.
    cheap = worst_case_risk([2.0, 0.0], x, y, label_flip_cost=0.25, **arguments)
    assert cheap.value == pytest.approx((0.125 + 0.5) / 2 + 0.1 * 1.35 * 4.0)
    dear = worst_case_risk([2.0, 0.0], x, y, label_flip_cost=math.inf, **arguments)
    assert dear.value == pytest.approx((0.125 + 0.5) / 2 + 0.1 * 1.35 * 2.0)
    assert dear.dual == pytest.approx(2.7)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_everything_at_the_worst_wall(norm: Any) -> None:
    """With a huge radius every row goes to the corner that is worst for it."""
    support = BoxSupport(np.zeros(2), np.ones(2), 0.0, 1.0)
    spec = RobustSpec(1e6, 0.5, norm, support, True, get_loss("pinball", quantile=0.9))
    problem = SiteProblem(np.full((4, 2), 0.5), np.full(4, 0.5), spec)
    # Residual at most 1 - 0 + 0 = 1 (worth 0.1 a unit) and at least 0 - 2 - 1 = -3 (worth 0.9).
    found = site_risk(np.array([1.0, -2.0, 0.0]), problem)
    assert found.value == pytest.approx(2.7, rel=1e-12)
    assert found.dual == 0.0


@pytest.mark.parametrize(("radius", "value"), [(0.0, 0.03), (0.1, 0.05), (0.35, 0.1), (9.0, 0.1)])
def test_a_target_goes_to_the_end_that_raises_its_piece(radius: float, value: float) -> None:
    """At weights of 0 the target alone moves: from .3 up to 1, where a prediction of 0 is short by 1, worth .1."""
    support = BoxSupport(np.zeros(2), np.ones(2), 0.0, 1.0)
    spec = RobustSpec(radius, 0.5, "l2", support, True, get_loss("pinball", quantile=0.1))
    problem = SiteProblem(np.full((3, 2), 0.5), np.full(3, 0.3), spec)
    assert site_risk(np.zeros(3), problem).value == pytest.approx(value)
