"""The Crammer-Singer risk: against a convex program, distributions of the ball, and the hinge of two classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.geometry.norms import vector_norm
from models.geometry.supports import BoxSupport
from models.losses.joint import CrammerSinger
from models.methods.guard import guarded_cut
from models.methods.site_answers import ProxCutSite
from models.problem import RobustSpec, SiteProblem
from models.validation import check_site_problem
from models.worst_case.crammer_singer import crammer_singer_cut
from models.worst_case.joint_risk import class_planes, joint_planes, joint_weights
from models.worst_case.risk import site_cut, site_risk

NORMS = st.sampled_from(["l1", "l2", "linf"])
COSTS = st.sampled_from([0.05, 0.4, 3.0, np.inf])


def drawn(seed: int, norm: str, cost: float, weighted: bool = False, n_classes: int = 3) -> SiteProblem:
    random = np.random.default_rng(seed)
    counts = random.uniform(0.5, 1.5, size=9)
    spec = RobustSpec(float(random.choice([0.0, 0.03, 0.3])), cost, norm)  # type: ignore[arg-type]
    labels = random.integers(n_classes, size=9).astype(float)
    return SiteProblem(random.normal(size=(9, 2)), labels, spec, counts / counts.mean() if weighted else None)


def loss(scores: np.ndarray, label: int) -> float:
    rivals = 1.0 + scores
    rivals[label] = scores[label]
    return float(max(rivals) - scores[label])


def by_definition(weights: np.ndarray, problem: SiteProblem, n_classes: int = 3) -> float:
    """The dual by CVXPY, every label of every row and every pair of classes written out."""
    planes = class_planes(weights, n_classes, problem.features.shape[1], True)
    scores = problem.features @ planes[:, :-1].T + planes[:, -1]
    held, spec = {int(each) for each in problem.labels}, problem.spec
    dual = {"l1": "linf", "l2": "l2", "linf": "l1"}[spec.transport_norm]
    price, worst = cp.Variable(nonneg=True), cp.Variable(len(scores))
    terms = []
    for row, own in enumerate(problem.labels.astype(int)):
        for label in range(n_classes):
            if label != own and np.isinf(spec.label_flip_cost):
                continue
            paid = 0.0 if label == own else spec.label_flip_cost * price
            terms.append(worst[row] >= loss(scores[row].copy(), label) - paid)
    reached = held if np.isinf(spec.label_flip_cost) else set(range(n_classes))
    terms += [
        price >= vector_norm(planes[k, :-1] - planes[label, :-1], dual) for k in range(n_classes) for label in reached
    ]
    counts = problem.counts / problem.counts.sum()
    return float(cp.Problem(cp.Minimize(spec.radius * price + counts @ worst), terms).solve(solver="CLARABEL"))


@settings(max_examples=50)
@given(st.integers(0, 10**6), NORMS, COSTS, st.booleans())
def test_the_risk_is_that_of_the_dual_with_every_label_written_out(
    seed: int, norm: str, cost: float, weighted: bool
) -> None:
    problem, weights = drawn(seed, norm, cost, weighted), np.random.default_rng(seed + 1).normal(size=9)
    assert crammer_singer_cut(weights, problem, 3).risk == pytest.approx(by_definition(weights, problem), abs=1e-6)


@given(st.integers(0, 10**6), NORMS, COSTS)
def test_every_cut_is_below_the_risk_everywhere(seed: int, norm: str, cost: float) -> None:
    problem, random = drawn(seed, norm, cost, weighted=seed % 2 == 0), np.random.default_rng(seed + 1)
    at = random.normal(size=9) * random.choice([0.0, 1.0])  # at zero all scores tie
    cut = crammer_singer_cut(at, problem, 3)
    for other in (random.normal(size=9), 5.0 * random.normal(size=9), at + 1e-3 * random.normal(size=9)):
        assert crammer_singer_cut(other, problem, 3).risk >= cut.height + cut.slope @ (other - at) - 1e-9


@given(st.integers(0, 10**6), NORMS, st.sampled_from([0.4, 3.0]))
def test_no_distribution_of_the_ball_has_a_larger_loss_and_some_come_near(seed: int, norm: str, cost: float) -> None:
    problem, random = drawn(seed, norm, cost), np.random.default_rng(seed + 1)
    weights = random.normal(size=9)
    risk, planes = crammer_singer_cut(weights, problem, 3).risk, class_planes(weights, 3, 2, True)
    count, best = len(problem.labels), 0.0
    mean = float(np.mean([loss(planes[:, :-1] @ x + planes[:, -1], int(y)) for x, y in _pairs(problem)]))
    # A share of one row is moved far off along a pair's steepest way, to any label; the rest of the radius flips.
    for row, (x, y) in enumerate(_pairs(problem)):
        for label in range(3):
            for k in range(3):
                for far in (0.5, 1e3):
                    way = planes[k, :-1] - planes[label, :-1]
                    way = {"l1": np.eye(2)[np.abs(way).argmax()] * np.sign(way), "l2": way, "linf": np.sign(way)}[norm]
                    size = vector_norm(way, norm)
                    moved = x + (far * way / size if size > 0 else 0.0)
                    dear = far + cost * (label != y)
                    share = min(1.0 / count, problem.spec.radius / dear)
                    there = loss(planes[:, :-1] @ moved + planes[:, -1], label)
                    here = loss(planes[:, :-1] @ x + planes[:, -1], int(y))
                    best = max(best, mean + share * (there - here))
        assert row < count
    assert best <= risk + 1e-9
    flips_pay = cost < np.inf and problem.spec.radius > 0
    if not flips_pay:
        assert best == pytest.approx(risk)


def _pairs(problem: SiteProblem) -> list[tuple[np.ndarray, float]]:
    return list(zip(problem.features, problem.labels, strict=True))


@given(st.integers(0, 10**6), NORMS, COSTS)
def test_with_two_classes_it_is_the_robust_hinge_of_the_margin(seed: int, norm: str, cost: float) -> None:
    problem, plane = drawn(seed, norm, cost, n_classes=2), np.random.default_rng(seed + 1).normal(size=3)
    weights = np.concatenate([-plane[:2] / 2, plane[:2] / 2, [-plane[2] / 2, plane[2] / 2]])
    binary = SiteProblem(problem.features, 2.0 * problem.labels - 1.0, problem.spec)
    assert crammer_singer_cut(weights, problem, 2).risk == pytest.approx(site_risk(plane, binary).value)


def test_what_is_no_such_problem_is_refused() -> None:
    problem = drawn(0, "l2", 1.0)
    box = BoxSupport(-9.0 * np.ones(2), 9.0 * np.ones(2))
    boxed = SiteProblem(problem.features, problem.labels, RobustSpec(0.1, 1.0, support=box))
    with pytest.raises(ProblemError, match="leave the support out"):
        crammer_singer_cut(np.zeros(9), boxed, 3)
    with pytest.raises(ProblemError, match="class indices from 0 to 1"):
        crammer_singer_cut(np.zeros(6), SiteProblem(problem.features, np.arange(9.0), problem.spec), 2)
    with pytest.raises(ProblemError, match="do not make a vector"):
        crammer_singer_cut(np.zeros(8), problem, 3)


@given(st.integers(0, 10**6), NORMS, COSTS, st.booleans(), st.booleans())
def test_as_a_loss_it_is_the_same_risk_counted_from_the_first_plane(
    seed: int, norm: str, cost: float, weighted: bool, with_intercept: bool
) -> None:
    plain = drawn(seed, norm, cost, weighted)
    plain = replace(plain, spec=replace(plain.spec, fit_intercept=with_intercept))
    joint = replace(plain, spec=replace(plain.spec, loss=CrammerSinger(3)))
    planes = np.random.default_rng(seed + 1).normal(size=(3, 3))
    planes[:, -1] *= with_intercept
    flat = np.concatenate([planes[:, :-1].ravel(), *([planes[:, -1]] if with_intercept else [])])
    weights = joint_weights(planes, with_intercept)
    assert weights.shape == (joint.dimension,)
    cut = site_cut(weights, joint)
    assert cut.risk == pytest.approx(crammer_singer_cut(flat, plain, 3).risk, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(
        joint_planes(weights, CrammerSinger(3), 2, with_intercept), planes - planes[0], atol=1e-12
    )
    for other in np.random.default_rng(seed + 2).normal(size=(6, joint.dimension)):
        assert site_risk(other, joint).value >= cut.height + cut.slope @ (other - weights) - 1e-9
    # What the account says of the rows is all that the slope has of them: the rest is one move of the radius.
    assert cut.rows is not None and cut.rows.shape == (2, 9)
    left = cut.slope[:4].reshape(2, 2) - cut.rows @ joint.features
    assert np.abs(left).max() <= joint.spec.radius * (1 + 1e-9) + 1e-12
    if with_intercept:
        np.testing.assert_allclose(cut.slope[4:], cut.rows.sum(axis=1), atol=1e-12)


@given(st.integers(0, 10**6), NORMS)
def test_its_prox_cut_is_below_the_risk_and_accounts_for_every_plane(seed: int, norm: str) -> None:
    plain = drawn(seed, norm, 1.0)
    joint = replace(plain, spec=replace(plain.spec, loss=CrammerSinger(3)))
    random = np.random.default_rng(seed + 3)
    point = random.normal(size=joint.dimension)
    found = ProxCutSite().accounted(joint, {"point": point, "centre": 0.5 * point, "penalty": np.array(0.3)}, {})
    told = found.arrays
    for other in [point, np.zeros_like(point), *random.normal(size=(6, joint.dimension))]:
        below = told["minorant_offset"] + told["minorant_slope"] @ other
        assert site_risk(other, joint).value >= below - 1e-9
    assert len(found.account.rows) == 4 and all(rows.shape == (9,) for rows in found.account.rows)
    assert found.account.whole


def test_an_isolating_cut_leaves_mixed_in_all_planes() -> None:
    class Strict:
        """Lets the exact cut of nothing leave."""

        def choose(self, question: bytes, candidate: Any, vectors: Any) -> Any:
            raise AssertionError("cuts are chosen as cuts")

        def choose_cut(self, question: bytes, near: Any, exact: Any, other: Any) -> Any:
            return other(2, np.random.default_rng(0))

    plain = drawn(4, "l2", 1.0)
    joint = replace(plain, spec=replace(plain.spec, loss=CrammerSinger(3)))
    point = np.random.default_rng(9).normal(size=joint.dimension)
    exact, told = site_cut(point, joint), guarded_cut(point, joint, Strict())
    assert told.risk == exact.risk and told.height <= exact.height
    assert told.rows is not None and exact.rows is not None and told.rows.shape == exact.rows.shape
    assert np.abs(told.rows - exact.rows).max() > 0
    for other in np.random.default_rng(10).normal(size=(10, joint.dimension)):
        assert site_risk(other, joint).value >= told.height + told.slope @ (other - point) - 1e-9


def test_labels_that_are_no_classes_are_refused() -> None:
    plain = drawn(1, "l2", 1.0)
    joint = SiteProblem(plain.features, plain.labels + 0.5, replace(plain.spec, loss=CrammerSinger(3)))
    with pytest.raises(ProblemError, match="class indices from 0 to 2"):
        check_site_problem(joint)
    with pytest.raises(ProblemError, match="three at least"):
        CrammerSinger(2)
    with pytest.raises(ProblemError, match="unbounded features only"):
        replace(joint.spec, support=BoxSupport(np.zeros(2), np.ones(2)))
