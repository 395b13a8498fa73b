"""Exact worst-case risk: against CVXPY, its subgradient, its special cases, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from models.basics import FloatArray, ProblemError
from models.geometry.norms import dual_norm
from models.geometry.supports import BoxSupport
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_cut, site_risk, worst_case_risk
from tests.oracles.worst_case import reference_risk

pytest.importorskip("cvxpy", reason="the oracle of these tests needs the extra 'reference'")

Problems = SearchStrategy[tuple[SiteProblem, FloatArray]]
AGREED = 1e-7
ORACLE_ZERO = 1e-9  # what the oracle, an interior point method, may make of a risk that is 0
ROUNDING = 1e-11


def _agrees(problem: SiteProblem, weights: FloatArray) -> None:
    exact, reference = site_risk(weights, problem).value, reference_risk(weights, problem)
    assert abs(exact - reference) <= AGREED * abs(reference) + ORACLE_ZERO, (exact, reference)


@settings(max_examples=80, derandomize=True)
@given(data=st.data())
def test_agrees_with_cvxpy_unbounded(unbounded_problems: Problems, data: DataObject) -> None:
    _agrees(*data.draw(unbounded_problems))


@settings(max_examples=90, derandomize=True)
@given(data=st.data())
def test_agrees_with_cvxpy_on_a_box(box_problems: Problems, data: DataObject) -> None:
    _agrees(*data.draw(box_problems))


@settings(max_examples=150, derandomize=True)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), boxed=st.booleans())
def test_subgradient_is_a_minorant(
    unbounded_problems: Problems, box_problems: Problems, data: DataObject, seed: int, boxed: bool
) -> None:
    problem, weights = data.draw(box_problems if boxed else unbounded_problems)
    here, cut = site_risk(weights, problem), site_cut(weights, problem)
    n_features, norm = problem.features.shape[1], problem.spec.transport_norm
    random = np.random.default_rng(seed)
    swing = np.zeros(n_features) if cut.swing is None else cut.swing
    assert (swing >= 0).all() and (cut.swing is None) != boxed
    for other in [*(weights + step * random.normal(size=weights.shape) for step in (1e-5, 0.1, 1.0, 20.0)), -weights]:
        there = site_risk(other, problem).value
        longer = dual_norm(other[:n_features], norm) - dual_norm(weights[:n_features], norm)
        plane = here.value + here.subgradient @ (other - weights)
        sharper = cut.height + cut.slope @ (other - weights) + cut.norm_weight * longer
        sharper += swing @ (np.abs(other) - np.abs(weights))[:n_features]
        assert there >= plane - ROUNDING * (1 + abs(there))
        assert there >= sharper - ROUNDING * (1 + abs(there))
        assert sharper >= plane - ROUNDING * (1 + abs(plane))
        # The same from the origin, as a server keeps it.
        told = cut.offset(weights, dual_norm(weights[:n_features], norm)) + cut.slope @ other
        told += cut.norm_weight * dual_norm(other[:n_features], norm) + swing @ np.abs(other[:n_features])
        assert sharper - 1e-9 * (1 + abs(there)) <= told <= there + ROUNDING * (1 + abs(there))


@settings(max_examples=100, derandomize=True)
@given(data=st.data(), boxed=st.booleans())
def test_dual_is_the_price_of_radius(
    unbounded_problems: Problems, box_problems: Problems, data: DataObject, boxed: bool
) -> None:
    """The risk is concave in the radius and the dual is a supergradient of it."""
    problem, weights = data.draw(box_problems if boxed else unbounded_problems)
    here = site_risk(weights, problem)
    for radius in (0.0, 0.5 * problem.spec.radius, problem.spec.radius + 0.1, 3 * problem.spec.radius + 1.0):
        there = site_risk(weights, replace(problem, spec=replace(problem.spec, radius=radius))).value
        bound = here.value + here.dual * (radius - problem.spec.radius)
        assert there <= bound + ROUNDING * (1 + abs(bound) + here.dual)


@settings(max_examples=100, derandomize=True)
@given(data=st.data(), boxed=st.booleans())
def test_order_of_rows_changes_nothing(
    unbounded_problems: Problems, box_problems: Problems, data: DataObject, boxed: bool
) -> None:
    problem, weights = data.draw(box_problems if boxed else unbounded_problems)
    order = np.random.default_rng(0).permutation(problem.labels.shape[0])
    shuffled = SiteProblem(problem.features[order], problem.labels[order], problem.spec)
    twice = SiteProblem(np.repeat(problem.features, 2, axis=0), np.repeat(problem.labels, 2), problem.spec)
    value = site_risk(weights, problem).value
    assert site_risk(weights, shuffled).value == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert site_risk(weights, twice).value == pytest.approx(value, rel=1e-11, abs=1e-11)


@settings(max_examples=100, derandomize=True)
@given(data=st.data())
def test_a_far_box_is_no_box(unbounded_problems: Problems, data: DataObject) -> None:
    problem, weights = data.draw(unbounded_problems)
    p = problem.features.shape[1]
    arguments: dict[str, Any] = {
        "radius": problem.spec.radius,
        "label_flip_cost": problem.spec.label_flip_cost,
        "transport_norm": problem.spec.transport_norm,
        "intercept": 0.3,
    }
    free = worst_case_risk(weights[:p], problem.features, problem.labels, **arguments)
    boxed = worst_case_risk(weights[:p], problem.features, problem.labels, support=(-1e6, 1e6), **arguments)
    closer = worst_case_risk(weights[:p], problem.features, problem.labels, support=(-0.5, 1.5), **arguments)
    # Where every sample has room to spare the supremum is only approached by moves that no box holds.
    assert boxed.value <= free.value + 1e-9 * (1 + free.value)
    assert boxed.value >= free.value - 1e-4 * (1 + free.value)
    assert closer.value <= boxed.value + 1e-9 * (1 + free.value)


def test_on_a_box_a_cut_at_zero_promises_no_norm() -> None:
    """Where no feature has a weight the radius is left over; walls keep it from being worth anything elsewhere."""
    box = BoxSupport(np.zeros(2), np.ones(2))
    rows, labels = np.array([[0.2, 0.8], [0.7, 0.1]]), np.array([1.0, -1.0])
    problem = SiteProblem(rows, labels, RobustSpec(10.0, math.inf, "l2", box))
    cut = site_cut(np.zeros(3), problem)
    for point in np.random.default_rng(0).normal(size=(20, 3)):
        norm = dual_norm(point[:2], "l2")
        assert cut.height + cut.slope @ point + cut.norm_weight * norm <= site_risk(point, problem).value + ROUNDING


def test_special_cases() -> None:
    random = np.random.default_rng(4)
    x, y, w = random.uniform(0, 1, (30, 3)), random.choice([-1.0, 1.0], 30), random.normal(size=3)
    hinge = np.maximum(0, 1 - y * (x @ w + 0.2)).mean()
    plain = worst_case_risk(w, x, y, radius=0, label_flip_cost=1, transport_norm="l2", intercept=0.2)
    assert plain.value == pytest.approx(hinge, rel=1e-14)
    trusted = worst_case_risk(w, x, y, radius=0.3, label_flip_cost=math.inf, transport_norm="linf", intercept=0.2)
    assert trusted.value == pytest.approx(hinge + 0.3 * np.abs(w).sum(), rel=1e-14)
    assert trusted.dual == pytest.approx(np.abs(w).sum())
    nothing = worst_case_risk(np.zeros(3), x, y, radius=5, label_flip_cost=1, transport_norm="l1", support=(0, 1))
    assert nothing.value == 1.0
    everything = worst_case_risk(w, x, y, radius=1e6, label_flip_cost=1, transport_norm="l1", support=(0, 1))
    extent = np.maximum(0, w).sum(), np.minimum(0, w).sum()
    assert everything.value == pytest.approx(1 + max(extent[0], -extent[1]), rel=1e-12)
    assert everything.dual == 0


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_many_rows_by_parts_and_at_once(norm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes over chunks of a large site give what the sorted whole gives."""
    random = np.random.default_rng(8)
    x, w = random.uniform(0, 1, (3000, 6)), random.normal(size=6)
    y = np.where((x - 0.5) @ w + random.normal(size=3000) > 0, 1.0, -1.0)
    for radius in (1e-3, 0.05, 0.4):
        for flip_cost in (0.5, math.inf):
            arguments: dict[str, Any] = {
                "radius": radius, "label_flip_cost": flip_cost, "transport_norm": norm, "support": (0, 1),
                "intercept": -0.5 * w.sum(),
            }
            whole = worst_case_risk(w, x, y, **arguments)
            with monkeypatch.context() as patch:
                patch.setattr("models.worst_case.box_hinge.CHUNK", 256)
                parts = worst_case_risk(w, x, y, **arguments)
            assert parts.value == pytest.approx(whole.value, rel=1e-12)
            np.testing.assert_allclose(parts.subgradient, whole.subgradient, rtol=0, atol=1e-5)


Refusal = tuple[dict[str, Any], str]
REFUSALS: list[Refusal] = [
    ({"radius": -0.1}, "radius must be a finite number at or above 0"),
    ({"radius": math.nan}, "radius must be a finite number at or above 0"),
    ({"radius": math.inf}, "radius must be a finite number at or above 0"),
    ({"label_flip_cost": 0.0}, "label_flip_cost must be above 0"),
    ({"label_flip_cost": math.nan}, "label_flip_cost must be above 0"),
    ({"transport_norm": "l3"}, "transport_norm must be one of"),
    ({"support": (0.2, 1.0)}, "outside the support box"),
    ({"support": (1.0, 0.0)}, "crossed"),
    ({"support": (0.0, math.inf)}, "finite"),
    ({"support": 3.0}, "support must be None or a pair"),
    ({"support": ([0.0, 0.0], [1.0, 1.0])}, "support must be None or a pair"),
    ({"labels": [1.0, 0.0]}, "labels must be -1 or \\+1"),
    ({"labels": [1.0]}, "features must be \\(N, P\\) and labels \\(N,\\)"),
    ({"weights": [1.0]}, "weights must be \\(P,\\)"),
    ({"weights": [1.0, math.nan, 0.0]}, "finite"),
    ({"intercept": math.inf}, "finite"),
    ({"features": np.zeros((0, 3)), "labels": []}, "at least one row"),
    ({"features": [[0.1, math.nan, 0.3], [0, 1, 1]]}, "features must be finite, 1 rows"),
]


@pytest.mark.parametrize(("change", "text"), REFUSALS)
def test_refuses_what_has_no_meaning(change: dict[str, Any], text: str) -> None:
    arguments: dict[str, Any] = {
        "weights": [1.0, -1.0, 2.0], "features": [[0.1, 0.2, 0.3], [0.0, 1.0, 1.0]], "labels": [1.0, -1.0],
        "radius": 0.1, "label_flip_cost": 1.0, "transport_norm": "l2", "support": (0.0, 1.0),
    } | change
    planes = [arguments.pop(name) for name in ("weights", "features", "labels")]
    with pytest.raises(ProblemError, match=text) as refusal:
        worst_case_risk(*planes, **arguments)
    assert "\n" not in str(refusal.value)


def test_a_rounded_wall_is_no_violation() -> None:
    value = worst_case_risk(
        [1.0, 1.0], [[1.0 + 1e-12, 0.5]], [1.0], radius=0.1, label_flip_cost=1, transport_norm="l2", support=(0, 1)
    ).value
    exact = worst_case_risk(
        [1.0, 1.0], [[1.0, 0.5]], [1.0], radius=0.1, label_flip_cost=1, transport_norm="l2", support=(0, 1)
    ).value
    assert value == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize("box", [False, True])
def test_where_all_rows_of_two_classes_of_one_size_are_wrong_the_intercept_has_no_slope(box: bool) -> None:
    random, slopes, plain = np.random.default_rng(0), [], []
    for _ in range(30):
        labels = random.permutation(np.repeat([-1.0, 1.0], 24))
        support = BoxSupport(np.zeros(3), np.ones(3)) if box else None
        rows = SiteProblem(random.uniform(size=(48, 3)), labels, RobustSpec(0.01, 1.0, support=support))
        slopes.append(site_cut(np.zeros(4), rows).slope[-1])
        plain.append(float((-labels / 48).sum()))
    assert any(plain) and not any(slopes)  # one sum over all leaves 1e-17 of some
