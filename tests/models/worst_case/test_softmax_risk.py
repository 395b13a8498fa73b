"""The worst-case risk of the softmax loss of all classes: against a convex program, distributions, differences."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.geometry.norms import vector_norm
from models.losses.joint import Softmax
from models.problem import RobustSpec, SiteProblem
from models.worst_case.joint_risk import joint_planes
from models.worst_case.risk import site_cut, site_risk

NORMS = st.sampled_from(["l1", "l2", "linf"])
COSTS = st.sampled_from([0.05, 0.4, 3.0, np.inf])
CLASSES = 3


def drawn(seed: int, norm: str, cost: float, weighted: bool = False) -> SiteProblem:
    random = np.random.default_rng(seed)
    counts = random.uniform(0.5, 1.5, size=9)
    radius = float(random.choice([0.0, 0.03, 0.3]))
    spec = RobustSpec(radius, cost, norm, loss=Softmax(CLASSES))  # type: ignore[arg-type]
    labels = random.integers(CLASSES, size=9).astype(float)
    return SiteProblem(random.normal(size=(9, 2)), labels, spec, counts / counts.mean() if weighted else None)


def weights_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed + 1).normal(size=6)


def scores_of(weights: np.ndarray, features: np.ndarray) -> np.ndarray:
    planes = joint_planes(weights, Softmax(CLASSES), 2, True)
    return np.asarray(features @ planes[:, :-1].T + planes[:, -1])


def losses(scores: np.ndarray) -> np.ndarray:
    """Loss of each label, (N, C)."""
    return np.asarray(np.log(np.exp(scores).sum(axis=1, keepdims=True)) - scores)


def by_definition(weights: np.ndarray, problem: SiteProblem) -> float:
    """The dual by CVXPY, every label of every row and every pair of classes written out."""
    planes, spec = joint_planes(weights, Softmax(CLASSES), 2, True), problem.spec
    told, held = losses(scores_of(weights, problem.features)), {int(each) for each in problem.labels}
    dual = {"l1": "linf", "l2": "l2", "linf": "l1"}[spec.transport_norm]
    price, worst = cp.Variable(nonneg=True), cp.Variable(len(told))
    terms = []
    for row, own in enumerate(problem.labels.astype(int)):
        for label in range(CLASSES):
            if label == own or np.isfinite(spec.label_flip_cost):
                paid = 0.0 if label == own else spec.label_flip_cost * price
                terms.append(worst[row] >= told[row, label] - paid)
    reached = held if np.isinf(spec.label_flip_cost) else set(range(CLASSES))
    terms += [
        price >= vector_norm(planes[k, :-1] - planes[label, :-1], dual) for k in range(CLASSES) for label in reached
    ]
    counts = problem.counts / problem.counts.sum()
    return float(cp.Problem(cp.Minimize(spec.radius * price + counts @ worst), terms).solve(solver="CLARABEL"))


@settings(max_examples=50)
@given(st.integers(0, 10**6), NORMS, COSTS, st.booleans())
def test_the_risk_is_that_of_the_dual_with_every_label_written_out(
    seed: int, norm: str, cost: float, weighted: bool
) -> None:
    problem = drawn(seed, norm, cost, weighted)
    assert site_risk(weights_of(seed), problem).value == pytest.approx(by_definition(weights_of(seed), problem), 1e-5)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("only", range(CLASSES))
def test_of_a_plant_of_one_class_the_planes_of_two_others_are_not_held_to_each_other(norm: str, only: int) -> None:
    """Where labels do not flip, no row can have the label of one of them: the radius is worth less."""
    problem = replace(drawn(only, norm, np.inf), labels=np.full(9, float(only)))
    problem = replace(problem, spec=replace(problem.spec, radius=0.3))
    for weights in (weights_of(only), np.array([3.0, 0.0, -1.0, 0.1, 0.3, -0.2]), np.array([3.0, 0, 6.0, 0, 0, 0])):
        assert site_risk(weights, problem).value == pytest.approx(by_definition(weights, problem), 1e-5)


@given(st.integers(0, 10**6), NORMS, COSTS)
def test_no_distribution_of_the_ball_has_a_greater_risk(seed: int, norm: str, cost: float) -> None:
    problem, random = drawn(seed, norm, cost), np.random.default_rng(seed + 2)
    spec, weights = problem.spec, weights_of(seed)
    moved, labels = problem.features.copy(), problem.labels.astype(int)
    left = spec.radius * len(labels)
    for row in random.permutation(len(labels)):
        way = random.normal(size=2)
        length = random.uniform(0.0, left)
        moved[row] += length * way / vector_norm(way, spec.transport_norm)
        left -= length
        if spec.label_flip_cost <= left:
            labels[row], left = (labels[row] + 1) % CLASSES, left - spec.label_flip_cost
    found = losses(scores_of(weights, moved))[np.arange(len(labels)), labels].mean()
    assert found <= site_risk(weights, problem).value + 1e-9


@given(st.integers(0, 10**6), NORMS, COSTS, st.booleans())
def test_a_cut_is_below_the_risk_everywhere_and_touches_it(seed: int, norm: str, cost: float, weighted: bool) -> None:
    problem, weights = drawn(seed, norm, cost, weighted), weights_of(seed)
    cut = site_cut(weights, problem)
    assert cut.risk == pytest.approx(cut.height) and cut.norm_weight == 0.0
    for other in (*np.random.default_rng(seed + 3).normal(size=(5, 6)), weights + 1e-3, weights - 1e-3):
        assert site_risk(other, problem).value >= cut.height + cut.slope @ (other - weights) - 1e-9


def test_without_a_ball_the_slope_is_the_gradient_and_its_rows_make_it() -> None:
    problem, weights = drawn(4, "l2", 1.0), weights_of(4)
    spec = RobustSpec(0.0, 1.0, loss=Softmax(CLASSES))
    problem = SiteProblem(problem.features, problem.labels, spec)
    cut = site_cut(weights, problem)
    steps = 1e-6 * np.eye(6)
    found = [
        (site_risk(weights + step, problem).value - site_risk(weights - step, problem).value) / 2e-6 for step in steps
    ]
    assert cut.slope == pytest.approx(found, abs=1e-8)
    assert cut.rows is not None and cut.rows.shape == (CLASSES - 1, 9)
    assert cut.slope == pytest.approx([*(cut.rows @ problem.features).ravel(), *cut.rows.sum(axis=1)])


def test_scores_beyond_the_exponential_are_no_trouble() -> None:
    problem = SiteProblem(np.array([[1.0], [-1.0]]), np.array([1.0, 2.0]), RobustSpec(0.0, 1.0, loss=Softmax(3)))
    cut = site_cut(np.array([2000.0, -2000.0, 0.0, 0.0]), problem)
    assert cut.risk == 0.0 and np.isfinite(cut.slope).all()
    assert site_risk(np.array([-2000.0, 2000.0, 0.0, 0.0]), problem).value == pytest.approx(4000.0)
