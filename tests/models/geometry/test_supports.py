"""Supports: what is refused, in one line, and the point inside that a polytope has."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.geometry.polytopes import check_bounded, combination, inner_point
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem
from models.validation import check_rows, check_site_problem

SQUARE = np.vstack([np.eye(2), -np.eye(2)])
UNIT = np.array([1.0, 1.0, 0.0, 0.0])


@settings(max_examples=25, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 5))
def test_a_cut_box_has_its_inner_point_as_deep_as_it_says(seed: int, d: int) -> None:
    random = np.random.default_rng(seed)
    matrix = np.vstack([np.eye(d), -np.eye(d), random.normal(size=(3, d))])
    limits = np.concatenate([np.ones(2 * d), random.uniform(0.1, 1.0, 3)])
    point, depth = inner_point(matrix, limits)
    distances = (limits - matrix @ point) / np.linalg.norm(matrix, axis=1)
    assert depth > 0
    assert distances.min() == pytest.approx(depth, abs=1e-9)
    check_bounded(matrix)
    direction = random.normal(size=d)
    mix = combination(matrix, direction)
    assert (mix >= 0).all()
    np.testing.assert_allclose(mix @ matrix, direction, atol=1e-9)


def test_features_in_units_far_apart_have_the_inner_point_of_equal_ones() -> None:
    """Depth is a distance in the features as given: the narrow side alone decides."""
    units = np.array([1e2, 1e-2])
    point, depth = inner_point(SQUARE, np.concatenate([2.0 * units, units]))
    assert point[1] == pytest.approx(0.5 * units[1], rel=1e-9) and depth == pytest.approx(1.5 * units[1], rel=1e-9)
    assert -units[0] + depth <= point[0] <= 2.0 * units[0] - depth
    check_bounded(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]) * units**4)


def test_a_row_of_zeros_with_a_limit_of_0_says_nothing() -> None:
    matrix, limits = np.vstack([SQUARE, np.zeros((2, 2))]), np.concatenate([UNIT, [0.0, 1.0]])
    point, depth = inner_point(matrix, limits)
    assert point == pytest.approx([0.5, 0.5]) and depth == pytest.approx(0.5)
    with pytest.raises(ProblemError, match="a row of zeros has a limit below 0"):
        inner_point(matrix, np.concatenate([UNIT, [1.0, -1e-12]]))


def test_a_thin_polytope_is_not_flat_but_one_without_an_inside_is() -> None:
    """Strips of 1e-6, at 0 and at 1, and one that is no wider than rounding may make it."""
    for low in (0.0, 1.0):
        assert inner_point(SQUARE, np.array([1.0, low + 1e-6, 0.0, -low]))[1] == pytest.approx(5e-7, rel=1e-3)
    with pytest.raises(ProblemError, match="is flat"):
        inner_point(SQUARE, np.array([1.0, 0.5, 0.0, -0.5 + 1e-12]))


def test_bounded_is_every_direction_for_as_many_rows_as_it_takes() -> None:
    """A simplex is; rows that leave a line, or a corner open on one side, are not, however many they are."""
    check_bounded(np.vstack([-np.eye(3), np.ones(3)]))
    open_corner, line = np.vstack([-np.eye(2), -np.ones((3, 2))]), np.array([[1.0, 1.0], [-1.0, -1.0]] * 3)
    for matrix in (open_corner, line, np.vstack([SQUARE, np.zeros((3, 2))])[[0, 2, 4, 5, 6]], np.zeros((4, 2))):
        with pytest.raises(ProblemError, match="unbounded"):
            check_bounded(matrix)
    with pytest.raises(ProblemError, match="unbounded in a direction"):
        combination(open_corner, np.array([1.0, 0.0]))


def test_no_weights_of_a_combination_add_up_to_less() -> None:
    """Of two rows in one direction the longer one: half the weight."""
    weights = combination(np.vstack([SQUARE, [4.0, 0.0], [0.0, 0.5]]), np.array([2.0, -1.0]))
    assert weights == pytest.approx([0.0, 0.0, 0.0, 1.0, 0.5, 0.0])


@pytest.mark.parametrize(
    ("matrix", "limits", "column", "text"),
    [
        (SQUARE[:3], UNIT[:3], None, "unbounded"),
        (np.eye(2), UNIT[:2], None, "unbounded"),
        (np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]), np.ones(3), None, "unbounded"),
        (SQUARE, UNIT, np.zeros(4), "unbounded"),
        (SQUARE, np.array([1.0, 1.0, -2.0, 0.0]), None, "empty"),
        (SQUARE, np.array([1.0, 0.5, 0.0, -0.5]), None, "flat"),
        (np.vstack([SQUARE, np.zeros(2)]), np.append(UNIT, -1.0), None, "empty"),
        (np.array([[math.nan, 1.0]]), np.ones(1), None, "finite"),
        (SQUARE, np.array([1.0, math.inf, 0.0, 0.0]), None, "finite"),
        (np.ones(3), np.ones(3), None, "a matrix \\(r, P\\) and limits \\(r,\\)"),
        (SQUARE, np.ones(3), None, "a matrix \\(r, P\\) and limits \\(r,\\)"),
        (SQUARE, UNIT, np.ones(3), "target column of a polytope support must have the shape"),
    ],
)
def test_refuses_a_polytope_that_is_none(matrix: Any, limits: Any, column: Any, text: str) -> None:
    with pytest.raises(ProblemError, match=text) as refusal:
        PolytopeSupport(matrix, limits, column)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("low", "high", "targets", "text"),
    [
        ([0.0, 2.0], [1.0, 1.0], (0.0, 1.0), "crossed"),
        ([0.0, 0.0], [1.0, math.inf], (0.0, 1.0), "must be finite"),
        ([0.0, 0.0], [1.0], (0.0, 1.0), "two vectors of one length"),
        ([0.0, 0.0], [1.0, 1.0], (0.5, 0.5), "needs low < high, got 0.5 and 0.5"),
    ],
)
def test_refuses_a_box_that_is_none(low: Any, high: Any, targets: tuple[float, float], text: str) -> None:
    """One pair of bounds that is crossed is enough."""
    with pytest.raises(ProblemError, match=text):
        BoxSupport(np.array(low), np.array(high), *targets)


CUBE = PolytopeSupport(
    np.vstack([SQUARE, np.zeros((2, 2))]), np.append(UNIT, [1.0, 0.0]), np.array([0, 0, 0, 0, 1, -1.0])
)


@pytest.mark.parametrize(
    ("loss", "support", "text"),
    [
        (
            "smooth_hinge",
            PolytopeSupport(SQUARE, UNIT),
            "smooth_hinge loss has a robust risk for unbounded features only",
        ),
        (
            "logistic",
            BoxSupport(np.zeros(2), np.ones(2)),
            "logistic loss has a robust risk for unbounded features only",
        ),
        ("huber", CUBE, "huber loss has a robust risk for unbounded features only"),
        ("pinball", PolytopeSupport(SQUARE, UNIT), "pinball loss needs a polytope support with a target_column"),
        ("hinge", CUBE, "hinge loss has no target: leave target_column out"),
    ],
)
def test_refuses_a_loss_and_support_that_no_theory_covers(loss: str, support: Any, text: str) -> None:
    with pytest.raises(ProblemError, match=text) as refusal:
        RobustSpec(0.1, 1.0, "l2", support, True, get_loss(loss))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("loss", "support", "labels", "text"),
    [
        ("hinge", PolytopeSupport(SQUARE, UNIT), [1.0, 1.0], "1 of 2 rows lie outside the support polytope"),
        ("pinball", CUBE, [0.5, 0.5], "1 of 2 rows lie outside the support polytope"),
        ("pinball", CUBE, [1.5, -1.0], "2 of 2 rows lie outside the support polytope"),
        ("hinge", PolytopeSupport(np.array([[1.0], [-1.0]]), np.ones(2)), [1.0, 1.0], "matrix has 1 columns"),
        ("pinball", BoxSupport(np.zeros(2), np.full(2, 2.0), 0.0, 1.0), [0.5, 1.5], "1 of 2 targets lie outside"),
        ("huber", None, [0.5, math.nan], "targets must be finite numbers, 1 rows"),
        ("logistic", None, [0.5, 1.0], "labels must be -1 or \\+1"),
    ],
)
def test_refuses_rows_that_do_not_fit(loss: str, support: Any, labels: list[float], text: str) -> None:
    rows = np.array([[0.5, 0.5], [1.5, 0.5]])
    spec = RobustSpec(0.1, 1.0, "l2", support, True, get_loss(loss))
    with pytest.raises(ProblemError, match=text) as refusal:
        check_site_problem(SiteProblem(rows, np.array(labels), spec))
    assert "\n" not in str(refusal.value)


def test_a_rounded_wall_is_no_violation() -> None:
    check_rows(np.array([[1.0 + 1e-12, -1e-12]]), np.array([1.0]), PolytopeSupport(SQUARE, UNIT))
    box = BoxSupport(np.zeros(2), np.ones(2), 0.0, 1.0)
    check_rows(np.array([[0.5, 1.0]]), np.array([1.0 + 1e-12]), box, "regression")


def test_says_that_a_polytope_needs_the_extra() -> None:
    """In a Python without CVXPY the rest works and the polytope is refused with a line that says how to get it."""
    program = """
import sys
sys.modules["cvxpy"] = None
import numpy as np
from models.basics import ProblemError
from models.geometry.supports import PolytopeSupport
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk
walls = PolytopeSupport(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
try:
    site_risk(np.ones(3), SiteProblem(np.zeros((2, 2)), np.array([1.0, -1.0]), RobustSpec(5.0, np.inf, "l2", walls)))
except ProblemError as refusal:
    print(refusal)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == (
        "the worst case over a polytope support has no fast solver and needs the extra 'reference': "
        "pip install 'ballast-diagnosis[reference]'\n"
    )
