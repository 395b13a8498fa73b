"""Row weights that prove a bound: brought into their set, unchanged where they are in it."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.centralised.hinge import _valid
from models.centralised.hinge_solver import PooledProblem

ROWS, PLANTS = 12, 3


def pooled(radius: FloatArray, cost: FloatArray) -> PooledProblem:
    site = np.repeat(np.arange(PLANTS), ROWS // PLANTS)
    weight = np.array([0.5, 0.3, 0.2])
    return PooledProblem(
        signed=np.random.default_rng(0).normal(size=(ROWS, 2)), share=weight[site] / (ROWS // PLANTS), site=site,
        radius=radius, label_flip_cost=cost, weight=weight, transport_norm="l2", n_features=2,
    )


def spent(problem: PooledProblem, flip: FloatArray) -> FloatArray:
    """Share of each plant's radius that its flips cost."""
    mean = np.array([flip[problem.site == plant].mean() for plant in range(PLANTS)])
    return mean * problem.label_flip_cost / problem.radius


def test_weights_in_the_set_stay_as_they_are() -> None:
    problem = pooled(np.full(PLANTS, 0.3), np.full(PLANTS, 0.5))
    random = np.random.default_rng(1)
    keep, flip = random.uniform(0.0, 0.5, ROWS), random.uniform(0.0, 0.5, ROWS)
    found = _valid(problem, keep, flip)
    np.testing.assert_array_equal(found[0], keep)
    np.testing.assert_array_equal(found[1], flip)


def test_weights_of_more_than_the_row_are_scaled_to_it_and_none_is_below_none() -> None:
    problem = pooled(np.full(PLANTS, 50.0), np.full(PLANTS, 0.5))
    keep, flip = np.full(ROWS, 1.5), np.full(ROWS, 0.5)
    keep[0], flip[1] = -0.2, -0.1
    found = _valid(problem, keep, flip)
    np.testing.assert_allclose(found[0], [0.0, 1.0] + [0.75] * (ROWS - 2))
    np.testing.assert_allclose(found[1], [0.5, 0.0] + [0.25] * (ROWS - 2))


def test_flips_that_cost_more_than_a_plants_radius_are_scaled_to_it_and_the_other_plants_are_not() -> None:
    problem = pooled(np.array([0.1, 0.1, 10.0]), np.full(PLANTS, 0.5))
    keep, flip = np.zeros(ROWS), np.full(ROWS, 0.8)
    flip[:4] = 0.1
    kept, flipped = _valid(problem, keep, flip)
    np.testing.assert_allclose(spent(problem, flipped), [0.5, 1.0, 0.04])
    np.testing.assert_allclose(flipped[4:8], 0.2)
    np.testing.assert_array_equal(kept, keep)
