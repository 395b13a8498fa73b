"""Constants of the lifts from both sides: no further than they stretch, and as far as their formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power

from models.basics import FloatArray, TransportNorm
from models.features.bent_move import bent_move
from models.features.lift import Lift
from models.features.nystrom import nystrom_lift
from models.features.products import product_lift
from models.features.spline import spline_lift
from models.geometry.norms import DUAL_NORM, vector_norm

ORDER: dict[TransportNorm, float] = {"l1": 1, "l2": 2, "linf": math.inf}
NORMS = tuple(ORDER)


def steepest(lift: Lift, slope: FloatArray, rows: FloatArray, norm: TransportNorm) -> float:
    """Largest dual norm of the gradients at the rows."""
    gradient = lift.gradient(rows, np.broadcast_to(slope, (len(rows), len(slope))))
    return float(vector_norm(gradient, DUAL_NORM[norm]).max())


@pytest.mark.parametrize("norm", NORMS)
def test_one_bump_of_a_kernel_is_as_steep_as_said(norm: TransportNorm) -> None:
    """``exp(-1/2) / (2 b)`` at the distance b from its point, by the way that is longest in the norm."""
    lift = nystrom_lift(np.array([[0.5, 0.5]]), bandwidth=0.25, keep_linear=False)
    line = np.linspace(0.0, 1.0, 201)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    said = float(lift.steepness(np.ones((1, 1)), norm)[0])
    assert said == pytest.approx(steepest(lift, np.ones(1), grid, norm), rel=1e-3)
    assert said == pytest.approx((math.sqrt(2.0) if norm == "linf" else 1.0) * 2.0 * math.exp(-0.5), rel=1e-5)


def test_many_points_of_a_kernel_are_as_steep_as_its_feature_map() -> None:
    """Where the points span it, the map itself is seen, whose derivative has length ``1 / b`` everywhere."""
    points, row = np.linspace(0.0, 1.0, 12)[:, None], np.array([[0.5]])
    lift, beside = (nystrom_lift(points, bandwidth=0.3, keep_linear=kept) for kept in (False, True))
    jacobian = np.array([lift.gradient(row, unit[None])[0, 0] for unit in np.eye(12)])
    length = float(np.linalg.norm(jacobian))
    assert length == pytest.approx(0.5 / 0.3, rel=1e-3)
    assert lift.lipschitz("l2") == pytest.approx(0.5 / 0.3, rel=1e-4)
    for each, slope in ((lift, jacobian), (beside, np.append(0.0, jacobian))):
        assert each.steepness(slope[None] / length, "l2")[0] == pytest.approx(length, rel=1e-3)


def test_constants_of_a_kernel_are_those_of_l2_by_the_norms_of_its_sizes() -> None:
    """``||z||_1 <= sqrt(K) ||z||_2`` of 16 points, ``||x||_2 <= sqrt(P) ||x||_inf`` of 4 features, ``1/2 / b = 2``."""
    points = np.random.default_rng(3).uniform(size=(16, 4))
    bare, beside = (nystrom_lift(points, bandwidth=0.25, keep_linear=kept) for kept in (False, True))
    assert [bare.lipschitz(norm) for norm in NORMS] == pytest.approx([8.0, 2.0, 4.0], rel=2e-5)
    assert [beside.lipschitz(norm) for norm in NORMS] == pytest.approx([9.0, math.sqrt(5.0), 4.0], rel=2e-5)
    wide = nystrom_lift(points, bandwidth=5.0)
    assert wide.lipschitz("linf") == 1.0
    linear = np.append([3.0, -4.0, 0.0, 0.0], np.zeros(16))[None]
    assert [float(beside.steepness(linear, norm)[0]) for norm in NORMS] == [4.0, 5.0, 7.0]


def test_whitening_is_the_inverse_root_of_the_points_kernel_with_its_ridge() -> None:
    points = np.random.default_rng(5).uniform(size=(9, 3))
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    kernel = np.exp(-squares / (2 * 0.7**2)) + 1e-6 * np.eye(9)
    lift = nystrom_lift(points, bandwidth=0.7)
    np.testing.assert_allclose(lift.whitening, fractional_matrix_power(kernel, -0.5), rtol=1e-6)


@pytest.mark.parametrize("squares", [False, True])
def test_constants_of_products_are_the_norms_of_the_bounds_of_their_derivatives(squares: bool) -> None:
    bounds = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    if squares:
        bounds = np.vstack([bounds, 2.0 * np.eye(3)])
    lift = product_lift(3, (0, 1, 2), squares=squares)
    norms = {norm: float(np.linalg.norm(bounds, order)) for norm, order in ORDER.items()}
    wanted = [1.0 + norms["l1"], math.hypot(1.0, norms["l2"]), max(1.0, norms["linf"])]
    assert [lift.lipschitz(norm) for norm in NORMS] == pytest.approx(wanted)
    corner, moved = np.ones((1, 3)), np.full((1, 3), 1.0 - 1e-7)
    ends = lift.apply(corner) - lift.apply(moved)
    assert float(vector_norm(ends, "linf")[0]) == pytest.approx(1e-7 * wanted[2], rel=1e-5)
    alike = np.append(np.zeros(3), np.linalg.svd(bounds)[0][:, 0])
    assert np.linalg.norm(lift.gradient(corner, alike[None])) == pytest.approx(norms["l2"])


@pytest.mark.parametrize(("norm", "by_feature"), [("l1", 5.0), ("l2", math.sqrt(29.0)), ("linf", 7.0)])
def test_lines_are_as_steep_as_their_steepest_segments_and_stretch_nothing(
    norm: TransportNorm, by_feature: float
) -> None:
    lift, slope = spline_lift(2, 2), np.array([3.0, -5.0, 1.0, 2.0])
    line = np.linspace(0.01, 0.99, 9)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    assert lift.steepness(slope[None], norm)[0] == pytest.approx(by_feature)
    assert steepest(lift, slope, grid, norm) == pytest.approx(by_feature) and lift.lipschitz(norm) == 1.0


@pytest.mark.parametrize(("norm", "matrix", "most"), [
    ("l1", [[1.0, 1.0], [1.0, 1.0]], 1.0), ("l1", [[-2.0, 0.0], [0.0, 1.0]], 2.0),
    ("l2", [[1.0, 0.0], [0.0, -1.0]], 1.0), ("l2", [[1.0, 2.0], [2.0, 1.0]], 3.0),
    ("linf", [[1.0, 1.0], [1.0, 1.0]], 4.0),
])
def test_a_bend_is_told_by_the_most_that_it_is_on_the_unit_ball(
    norm: TransportNorm, matrix: list[list[float]], most: float
) -> None:
    bend = np.array(matrix)
    around = np.linspace(0.0, 2.0 * math.pi, 721)
    moves = np.column_stack([np.cos(around), np.sin(around)])
    moves /= vector_norm(moves, norm)[:, None]
    assert np.abs(np.einsum("ni,ij,nj->n", moves, bend, moves)).max() == pytest.approx(most, rel=1e-4)
    flat = bent_move(np.zeros((1, 1, 2)), bend[None], np.array([[0.36]]), norm)
    assert flat[0, 0] == pytest.approx(math.sqrt(0.36 / most))
    root = bent_move(np.array([[[2.0, 0.0]]]), bend[None], np.array([[0.36]]), norm)[0, 0]
    assert 2.0 * root + most * root**2 == pytest.approx(0.36)
