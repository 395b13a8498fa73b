"""Where a program on a cut model begins: nearer where more is known, never a reason for another solution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import TransportNorm
from models.cuts.cut_model import CutModel
from models.cuts.norm_rows import norm_rows
from models.cuts.program_start import Goal, first_duals, on_the_path
from models.site_ambiguity.ball import MixtureBall
from models.site_ambiguity.epigraph import mixture_rows
from models.solvers.second_order_cone import depth

CENTRE, LOWER = np.array([1.0, -2.0]), np.array([-1.0, 1.0])


def model(*slopes: tuple[float, float]) -> CutModel:
    """Cuts of one site through the origin."""
    count = len(slopes)
    return CutModel(
        np.ones(1), np.zeros(1), np.zeros(count, int), np.full(count, 9.0), np.array(slopes), np.zeros(count), "l2", 2
    )


def test_the_start_is_on_the_chord_at_the_level() -> None:
    """Of one cut it is at the level itself; of several, a convex model, it is not above it."""
    goal = Goal(6.0, np.zeros(2), 0.0, 1e-9)
    line = model((1.0, 0.0))  # 10 at the centre, 8 at the lower point
    found = replace(goal, level=9.5).on_the_way(line, CENTRE, LOWER)
    assert found.begin == pytest.approx(0.25 * (LOWER - CENTRE)) and found.drop == pytest.approx(0.5)
    bent = model((1.0, 0.0), (0.5, -1.0), (-2.0, 0.2))
    high, low = bent.value(CENTRE), bent.value(LOWER)
    for share in (0.1, 0.5, 0.9):
        level = low + share * (high - low)
        found = replace(goal, level=level).on_the_way(bent, CENTRE, LOWER)
        assert bent.value(CENTRE + found.begin) <= level + 1e-12
        assert found.drop == pytest.approx(high - level)


def test_there_is_no_way_to_a_level_that_is_not_between_the_two() -> None:
    goal, line = Goal(6.0, np.zeros(2), 0.0, 1e-9), model((1.0, 0.0))
    for level in (None, 7.5, 8.0, 10.0, 11.0):
        given = replace(goal, level=level)
        assert given.on_the_way(line, CENTRE, LOWER) is given


def test_afar_nothing_is_known_and_all_digits_count() -> None:
    near = Goal(1.0, np.ones(3), 0.4, 1e-9)
    afar = near.from_afar()
    assert not afar.begin.any() and afar.in_units(2.0) == (1.0, 1e-9) and afar.level == 1.0
    assert afar.least_slack(2.0, 5) == 0.1
    sharp = near.with_all_digits()
    assert sharp.in_units(2.0) == (near.in_units(2.0)[0], 1e-9) and (sharp.begin == near.begin).all()


def test_what_is_to_go_counts_in_units_of_the_heights() -> None:
    """20 times what a bound may miss; the start's room, tolerance and products follow it, within their ends."""
    least, way = Goal.minimum(np.ones(3), 0.01, 1e-12), Goal(1.0, np.ones(3), 0.2, 1e-9)
    assert least.drop == pytest.approx(0.2) and least.level is None and not least.begin.any()
    assert Goal.minimum(np.ones(3), 0.0, 1e-12).in_units(1.0) == (1.0, 1e-12)
    for goal in (least, way):
        for height in (4.0, 40.0):
            twice = replace(goal, drop=2.0 * goal.drop)
            assert twice.in_units(2.0 * height) == goal.in_units(height)
            assert goal.mean_product(height, 7) == pytest.approx(goal.mean_product(1.0, 1) / height / 7)
            assert goal.least_slack(height, 7) == goal.mean_product(height, 7)
    # A minimum misses .06 of what its bound may miss: 3e-3 of the drop, which is 20 times that.
    assert least.in_units(4.0)[1] * 4.0 == pytest.approx(0.06 * 0.01)
    assert way.in_units(40.0)[1] * 40.0 == pytest.approx(1e-6 * 0.2)
    # A level leaves the norm more room at the start than a minimum that is as far.
    assert least.in_units(40.0)[0] == pytest.approx(1.5 * 0.2 / 40.0) and way.in_units(40.0)[0] > 0.1
    for goal in (least, way):
        rough = replace(goal, begin=np.ones(256))
        assert rough.in_units(40.0)[1] > goal.in_units(40.0)[1]
    assert Goal(None, np.ones(3), 1e-14, 1e-12).in_units(1.0) == (1e-5, 1e-12)
    assert Goal(1.0, np.ones(3), 1e-14, 1e-9).in_units(1.0) == (1e-5, 1e-13)
    assert Goal(1.0, np.ones(300), 1e6, 1e-9).in_units(1.0) == (1.0, 1e-3)


def test_a_minimum_by_active_sets_is_finer_and_never_finer_than_asked() -> None:
    goal = Goal.minimum(np.ones(3), 0.01, 1e-12)
    assert goal.fine_tolerance(4.0) == pytest.approx(1e-4 * 0.2 / 4.0)
    assert goal.fine_tolerance(1e15) == 1e-12 and replace(goal, drop=9.0).fine_tolerance(1.0) == 1e-4


@pytest.mark.parametrize("mean", [1e-6, 1e-3, 0.1, 3.0])
def test_heights_on_the_path_have_multipliers_that_sum_to_the_weights(mean: float) -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        site = np.sort(np.append(np.arange(4), random.integers(0, 4, 20)))
        below = random.normal(size=24) * 10.0 ** random.uniform(-3, 1)
        weights = random.dirichlet(np.ones(4))
        heights, duals = on_the_path(below, site, weights, mean)
        slack = heights[site] - below
        assert (slack > 0).all()
        np.testing.assert_allclose(duals * slack, mean, rtol=1e-12)
        np.testing.assert_allclose(np.bincount(site, weights=duals), weights, rtol=1e-6)
    held = on_the_path(np.array([0.0, 1.0]), np.array([0, 1]), np.array([0.0, 1.0]), mean)[1]
    assert held == pytest.approx([1e-6, 1.0])  # a site without weight has a multiplier all the same


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_first_multipliers_are_inside_and_carry_the_norm_that_the_cuts_ask_for(norm: TransportNorm) -> None:
    """One for each row, above 0; of the cones strictly inside; the norm's sum to what the cuts pull it with."""
    cuts = CutModel(
        np.array([0.4, 0.6]), np.array([0.1, 0.2]), np.array([0, 1, 1]), np.ones(3), np.ones((3, 3)),
        np.array([0.3, 0.5, 0.0]), norm, 3, MixtureBall("l2", 0.2),
    )
    rows = norm_rows(cuts, np.zeros(3), 1.0, np.zeros(3), 1.0)
    mixed = mixture_rows(cuts.site_weights, cuts.mixture, np.ones(2))
    order, of_cuts = np.array([0, 3, 1, 2, 4]), np.array([0.3, 0.1, 0.2, 0.2, 0.2])
    duals = first_duals(cuts, mixed, rows, order, 1, of_cuts)
    parts = np.split(duals, np.cumsum([5, mixed.rows.shape[0], 1, rows.rows.shape[0]]))
    assert (parts[0] == of_cuts).all() and (parts[1] == 0.5).all() and parts[2] == [1.0]
    assert depth(parts[4]) == 1.0 and parts[4].size == mixed.cone.shape[0]
    if rows.cone:
        head = parts[3][rows.rows.shape[0] - rows.cone :]
        assert head[0] == pytest.approx(float(of_cuts @ rows.weights[order, 0])) and not head[1:].any()
    linear = parts[3][: rows.rows.shape[0] - rows.cone]
    assert (linear > 0).all() and linear.sum() == pytest.approx(1.0 if linear.size else 0.0)
