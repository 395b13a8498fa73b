"""Scaling, products and longest steps of cones by what defines them."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import FloatArray
from models.solvers.second_order_cone import (
    Cones,
    Scaling,
    depth,
    determinant,
    lowest_change,
)

SIZES = (2, 5)
SPLIT = 4
ROWS = SPLIT + sum(SIZES)


def _inside(random: np.random.Generator, cones: Cones) -> FloatArray:
    point = np.exp(random.normal(size=ROWS))
    for part in cones.parts:
        point[part] = random.normal(size=part.stop - part.start)
        point[part.start] = 1.2 * np.linalg.norm(point[part][1:]) + 0.01
    return point


def test_the_last_rows_are_the_cones_in_their_order() -> None:
    cones = Cones.of(ROWS, SIZES)
    assert cones.split == SPLIT
    assert [(part.start, part.stop) for part in cones.parts] == [(4, 6), (6, 11)]
    unit = cones.unit(ROWS)
    np.testing.assert_array_equal(unit, [1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0])
    assert cones.degree == unit @ unit


@pytest.mark.parametrize("seed", range(5))
def test_the_scaling_takes_slack_and_dual_to_one_point(seed: int) -> None:
    random, cones = np.random.default_rng(seed), Cones.of(ROWS, SIZES)
    slack, dual, other = _inside(random, cones), _inside(random, cones), random.normal(size=ROWS)
    scaling = Scaling.at(slack, dual, cones)
    np.testing.assert_allclose(scaling.scale(dual), scaling.point, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(scaling.unscale(slack), scaling.point, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(scaling.unscale(scaling.scale(other)), other, rtol=1e-9, atol=1e-9)
    twice = scaling.unscale(scaling.unscale(other))
    np.testing.assert_allclose(scaling.unscale_twice(other), twice, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scaling.product(scaling.point, scaling.divide(other)), other, rtol=1e-9, atol=1e-9)
    # Scaling keeps the inner product, and the identity is one of the Jordan product.
    assert scaling.point @ scaling.point == pytest.approx(slack @ dual)
    np.testing.assert_allclose(scaling.product(cones.unit(ROWS), other), other, rtol=1e-14)


@pytest.mark.parametrize("seed", range(10))
def test_the_longest_step_ends_at_the_boundary(seed: int) -> None:
    """Slack and dual in turn are what the step runs against."""
    random, cones = np.random.default_rng(seed), Cones.of(ROWS, SIZES)
    slack, dual = _inside(random, cones), _inside(random, cones)
    scaling = Scaling.at(slack, dual, cones)
    for fast, slow in ((1.0, 1e-3), (1e-3, 1.0)):
        dslack, ddual = fast * random.normal(size=ROWS), slow * random.normal(size=ROWS)
        longest = scaling.longest(slack, dslack, dual, ddual)

        def least(step: float, changes: tuple[FloatArray, FloatArray] = (dslack, ddual)) -> float:
            ends = [point + step * change for point, change in zip((slack, dual), changes, strict=True)]
            linear = [float(end[:SPLIT].min()) for end in ends]
            of_cones = [float(end[part][0] - np.linalg.norm(end[part][1:])) for end in ends for part in cones.parts]
            return min(*linear, *of_cones)

        assert least(longest * (1 - 1e-6)) > 0 > least(longest * (1 + 1e-6))


@pytest.mark.parametrize("seed", range(20))
def test_a_step_back_to_the_tip_is_seen_where_rounding_hides_the_surface(seed: int) -> None:
    """At the surface the determinant is rounding, and still a step of minus the point ends at the tip."""
    point = np.random.default_rng(seed).normal(size=4)
    point[0] = np.linalg.norm(point[1:])
    assert lowest_change(point, -point, determinant(point)) <= -1.0


def test_the_depth_is_relative_to_the_size() -> None:
    point = np.array([2.0, 1.0, 0.5, -0.5])
    assert depth(1e6 * point) == pytest.approx(depth(point)) == pytest.approx(1.0 - np.sqrt(1.5) / 2.0)
    cones = Cones.of(5, (2, 3))
    assert cones.depth(np.array([4.0, 3.0, 10.0, 6.0, 0.0])) == pytest.approx(0.25)
    assert Cones.of(5, ()).depth(np.ones(5)) == np.inf
