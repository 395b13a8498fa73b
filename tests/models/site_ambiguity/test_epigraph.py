"""The worst mixture as rows of a cone program: their least cost, where they begin, and what their multipliers say."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import FloatArray
from models.site_ambiguity.ball import MixtureBall, MixtureNorm, worst_mixture
from models.site_ambiguity.epigraph import MixtureRows, mixture_rows
from models.solvers.cone_program import ConeProgram
from models.solvers.conic_interior_point import solve_cone_program
from models.solvers.solution import Solution

NORMS: tuple[MixtureNorm, ...] = ("l1", "l2", "linf")
CENTRE = np.array([0.05, 0.5, 0.25, 0.2])


def solved(mixed: MixtureRows, heights: FloatArray) -> Solution:
    """The program of the rows whose heights are at or above those given."""
    count, width = heights.shape[0], mixed.cost.shape[0]
    up = np.hstack([-np.eye(count), np.zeros((count, width - count))])
    limits = np.concatenate([-heights, np.zeros(mixed.rows.shape[0] + mixed.cone.shape[0])])
    cones = (mixed.cone.shape[0],) if mixed.cone.size else ()
    program = ConeProgram(np.zeros(width), mixed.cost, np.vstack([up, mixed.rows, mixed.cone]), limits, cones)
    return solve_cone_program(program, 1e-10)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", [0.0, 0.03, 0.3, 0.7, 0.94, 1.2, 2.0])
def test_the_least_cost_is_the_worst_mixture_and_its_multipliers_are_that(norm: MixtureNorm, radius: float) -> None:
    """Radii that empty no site, one, several, and that cover the simplex in some norms only or in all."""
    random, ball = np.random.default_rng(4), MixtureBall(norm, radius)
    for size in (1.0, 30.0):
        heights = size * random.normal(size=4)
        found, worst = solved(mixture_rows(CENTRE, ball, heights), heights), worst_mixture(heights, CENTRE, ball)
        value = float(mixture_rows(CENTRE, ball, heights).cost @ found.point)
        assert value == pytest.approx(worst.value, abs=1e-7 * size)
        np.testing.assert_allclose(found.multipliers[:4], worst.weights, atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", [0.3, 2.0])
def test_it_begins_strictly_inside(norm: MixtureNorm, radius: float) -> None:
    heights = np.array([30.0, -2.0, 0.5, 7.0])
    mixed = mixture_rows(CENTRE, MixtureBall(norm, radius), heights)
    start = np.append(heights, mixed.start)
    assert (mixed.rows @ start < -0.5).all()
    if mixed.cone.size:
        apex = -mixed.cone @ start
        assert apex[0] > np.linalg.norm(apex[1:]) + 0.5


def test_one_site_and_fixed_weights_add_nothing() -> None:
    for centre, radius in ((CENTRE, 0.0), (np.ones(1), 0.7)):
        mixed = mixture_rows(centre, MixtureBall("l2", radius), np.zeros(centre.size))
        assert mixed.rows.size == mixed.cone.size == mixed.start.size == 0
        np.testing.assert_array_equal(mixed.cost, centre)
