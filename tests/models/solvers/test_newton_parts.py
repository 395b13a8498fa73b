"""What rows and norm constraints add to a Newton step of the hinge's interior point, by what a step must do.

For a part with pushes f (what its duals add to the stationarity equations), matrix M and right-hand side r, a whole
step d takes f to ``f + r - M d``, and slacks times duals to ``degree target - correction`` plus the steps' own product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray
from models.solvers.hinge_rows import HingeRows, SiteRows
from models.solvers.norm_cones import CONES, NormCone

NORMS = ("l1", "l2", "linf")
LENGTH = 0.3


def _symmetric(lower: FloatArray) -> FloatArray:
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def _started(norm: str, random: np.random.Generator) -> NormCone:
    """A cone some way from its start, as slacks and duals are on the way."""
    cone = CONES[norm](random.normal(size=5), 0.5, 2.0, 0.1)
    cone.add_curvature(np.zeros((6, 6)))
    cone.shift(0.05, 0.0)
    reach = cone.set_step(random.normal(size=6))
    cone.move(min(1.0, -0.5 / reach if reach < 0 else 1.0))
    return cone


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(4))
def test_a_step_of_a_norm_constraint(norm: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    cone, matrix = _started(norm, random), np.zeros((8, 8))
    cone.add_curvature(matrix)
    keep = [7, 0, 1, 2, 3, 4]  # the multiplier last, two unknowns of others before it
    assert not np.delete(np.delete(matrix, keep, 0), keep, 1).any()
    curvature = _symmetric(matrix)[np.ix_(keep, keep)]
    cone.shift(0.0, 0.0)
    cone.set_step(random.normal(size=6))
    second, before, pull = cone.curved_change(), cone.complementarity(), cone.pull().copy()
    target, correction, step = 0.02, 0.7, random.normal(size=6)
    shift = cone.shift(target, correction).copy()
    cone.set_step(step)
    cone.move(LENGTH)
    np.testing.assert_allclose(cone.pull(), pull + LENGTH * (shift - curvature @ step), rtol=1e-9, atol=1e-10)
    change = cone.degree * target - correction * second - before
    after = before + LENGTH * change + LENGTH**2 * cone.curved_change()
    assert cone.complementarity() == pytest.approx(after, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_duals_of_the_bounds_on_each_weight_sum_to_that_of_the_bound_on_their_sum(seed: int) -> None:
    """The equation of the bounds that are eliminated: a step takes away what is missed of it."""
    random = np.random.default_rng(seed)
    cone: Any = _started("linf", random)

    def missed() -> FloatArray:
        return np.asarray(cone._dual.sum(axis=0) - cone._top_dual)

    for target, correction in ((0.0, 0.0), (0.02, 0.7)):
        cone.add_curvature(np.zeros((6, 6)))
        cone.shift(target, correction)
        cone.set_step(random.normal(size=6))
        before = missed()
        cone.move(1e-3)
        np.testing.assert_allclose(missed(), (1.0 - 1e-3) * before, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("floor", [0.0, 30.0])
def test_a_norm_constraint_starts_inside_and_worth_the_price(norm: str, floor: float) -> None:
    """Slack and dual inside, as the longest steps say, and near the complementarity and the price that are asked."""
    features, order = np.array([3.0, 0.0, -4.0]), {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    cone = CONES[norm](features, floor, 2.0, 0.1)
    assert cone.multiplier >= floor and cone.multiplier > np.linalg.norm(features, order)
    assert 0 < cone.pull()[0] <= 2.0 * (1 + 1e-12)
    assert 0.0 < cone.complementarity() <= cone.degree * 0.1 * (1 + 1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_a_norm_constraint_resettles_inside_only(norm: str) -> None:
    """At the point it stands at nothing changes; outside the cone it refuses."""
    features = np.array([0.3, 0.0, -0.4])
    cone = CONES[norm](features, 2.0, 2.0, 0.1)
    before = cone.complementarity()
    assert cone.resettle(features, cone.multiplier)
    assert cone.complementarity() == pytest.approx(before, rel=1e-12)
    assert not cone.resettle(features, 0.1)
    assert cone.complementarity() == pytest.approx(before, rel=1e-12)


def _one_site(random: np.random.Generator, flip: float) -> tuple[HingeRows, int]:
    part = HingeRows(random.normal(size=(12, 3)), flip, random.uniform(0.5, 2.0, 12))
    part.centre(random.normal(size=12), 2.0, 0.1)
    return part, 4


def _two_sites(random: np.random.Generator, flip: float) -> tuple[HingeRows, slice]:
    site = np.repeat([0, 1], [7, 5])
    part = SiteRows(random.normal(size=(12, 3)), flip * np.array([1.0, 3.0]), random.uniform(0.5, 2.0, 12), site)
    part.centre(random.normal(size=12), np.array([2.0, 0.7]), 0.1)
    return part, slice(3, 5)


@pytest.mark.parametrize(("made", "flip"), [(_one_site, 0.6), (_one_site, np.inf), (_two_sites, 0.6)])
@pytest.mark.parametrize("seed", range(4))
def test_a_step_of_rows(made: Callable, flip: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    part, place = made(random, flip)
    # Off the path, and duals that do not yet sum to the shares.
    part.slack *= random.uniform(0.5, 2.0, part.slack.shape)
    part.dual *= random.uniform(0.5, 2.0, part.dual.shape)

    def pushes() -> FloatArray:
        found = np.zeros(5)
        found[:3] = part.pull()
        if part.can_flip:
            found[place] = part.flipped
        return found

    matrix = np.zeros((5, 5))
    part.add_curvature(matrix, place)
    part.add_right_hand_side(np.zeros(5), place, 0.0, 0.0)
    first = random.normal(size=5)
    part.set_step(first[:3], first[place])
    second, before, force = part.curved_change(), part.complementarity(), pushes()
    short, target, correction, step = part.dual.sum(axis=0) - part.share, 0.02, 0.7, random.normal(size=5)
    right = np.zeros(5)
    part.add_right_hand_side(right, place, target, correction)
    part.set_step(step[:3], step[place])
    part.move(LENGTH)
    np.testing.assert_allclose(pushes(), force + LENGTH * (right - _symmetric(matrix) @ step), rtol=1e-9, atol=1e-10)
    change = part.slack.size * target - correction * second - before
    after = before + LENGTH * change + LENGTH**2 * part.curved_change()
    assert part.complementarity() == pytest.approx(after, rel=1e-9)
    # What the duals miss of the shares falls with the step.
    np.testing.assert_allclose(part.dual.sum(axis=0) - part.share, (1 - LENGTH) * short, rtol=1e-9, atol=1e-10)
