"""Losses, bounds and boxes of the quadratic solver by hand and on fine grids."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.basics import FloatArray
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.quadratic import QuadraticLosses, solve_relative


def _bowls(seed: int, n: int = 3) -> QuadraticLosses:
    """n strictly convex losses of two weights, each at or above 0, with minimisers on all sides."""
    random = np.random.default_rng(seed)
    roots = random.normal(size=(n, 2, 2)) + np.eye(2)
    centres = random.normal(size=(n, 2))
    hessians = np.array([root @ root.T + 0.2 * np.eye(2) for root in roots])
    slopes = -np.einsum("ipq,iq->ip", hessians, centres)
    return QuadraticLosses(hessians, slopes, 0.1 - 0.5 * np.einsum("ip,ip->i", slopes, centres))


def _grid(low: FloatArray, high: FloatArray, count: int = 121) -> FloatArray:
    axes = np.meshgrid(*(np.linspace(*ends, count) for ends in zip(low, high, strict=True)))
    return np.column_stack([axis.ravel() for axis in axes])


@pytest.mark.parametrize("mean", [False, True])
def test_losses_are_sums_or_means_of_squares(mean: bool) -> None:
    random = np.random.default_rng(5)
    features = [random.normal(size=(count, 2)) for count in (3, 7)]
    targets = [random.normal(size=count) for count in (3, 7)]
    losses, at = QuadraticLosses.of_squares(features, targets, mean=mean), random.normal(size=2)
    squares = [np.square(y - x @ at) for x, y in zip(features, targets, strict=True)]
    wanted = [each.mean() if mean else each.sum() for each in squares]
    np.testing.assert_allclose(losses.values(at), wanted, rtol=1e-12)
    ahead = [(losses.values(at + step) - losses.values(at - step)) / 2e-5 for step in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(losses.gradients(at).T, ahead, rtol=1e-6)


def test_without_a_box_the_bound_is_the_least_value_from_wherever_it_is_taken() -> None:
    losses, weights = _bowls(1), np.array([0.5, 0.7, -0.2])
    hessian = np.einsum("i,ipq->pq", weights, losses.hessians)
    assert np.linalg.eigvalsh(hessian)[0] > 0.1
    lowest = weights @ losses.values(np.linalg.solve(hessian, -(weights @ losses.slopes)))
    for near in (np.zeros(2), np.array([3.0, -2.0])):
        assert losses.lower_bound(weights, near, None) == pytest.approx(float(lowest), rel=1e-9)


def test_within_a_box_the_bound_is_the_tangents_least_value_at_its_corners() -> None:
    losses, weights = _bowls(2), np.full(3, 1.0 / 3.0)
    box = (np.array([-1.0, -0.5]), np.array([0.5, 1.5]))
    corners, points = _grid(*box, 2), _grid(*box)
    values = np.array([weights @ losses.values(point) for point in points])
    for near in corners:
        slope = weights @ losses.gradients(near)
        bound = losses.lower_bound(weights, near, box)
        assert bound <= values.min()
        tangent = float(weights @ losses.values(near)) + (corners - near) @ slope
        assert bound == pytest.approx(tangent.min(), rel=1e-12)


@pytest.mark.parametrize("boxed", [False, True])
def test_what_bends_down_ever_so_little_has_no_bound(boxed: bool) -> None:
    losses = QuadraticLosses(np.array([np.eye(2), np.diag([0.0, 1.0])]), np.zeros((2, 2)), np.ones(2))
    box = (np.full(2, -100.0), np.full(2, 100.0)) if boxed else None
    down = np.array([1.0, -1.0 - 1e-4])  # curvature 1 along the first weight, -1e-4 along the second
    assert losses.lower_bound(down, np.zeros(2), box) == -math.inf
    assert losses.lower_bound(np.array([1.0, -0.5]), np.zeros(2), box) == pytest.approx(0.5)


@pytest.mark.parametrize("phi", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(8))
def test_in_a_box_no_point_of_a_grid_is_better_and_the_bound_proves_it(seed: int, phi: float) -> None:
    losses, ambiguity = _bowls(seed), RelativeSet.of_shares(3, phi, 0.5, 0.5)
    low = np.random.default_rng(seed).uniform(-1.0, 0.3, 2)
    box = (low, low + np.array([0.4, 0.9]))
    found = solve_relative(losses, ambiguity, box=box)
    assert (found.point >= box[0]).all() and (found.point <= box[1]).all()
    best = min(ambiguity.largest(losses.values(point)) for point in _grid(*box, 61))
    assert found.upper <= best * (1 + 1e-9)
    assert found.upper == pytest.approx(ambiguity.largest(losses.values(found.point)), rel=1e-12)
    if phi == 0.0:
        assert found.gap <= 1e-8 * found.upper
    assert found.lower <= best
