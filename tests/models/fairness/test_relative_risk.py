"""Relative fairness over risks: members of Lambda without negative entries, and how far the weights can be."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from models.basics import FloatArray, TransportNorm
from models.cuts.cut_model import CutModel
from models.cuts.cut_program import minimise
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.relative_risk import REACH, Majorant, RelativeRule, negative_lift, positive_member, reach_of


def is_member(ambiguity: RelativeSet, weights: FloatArray) -> bool:
    """Whether ``(1 - phi) weights = a - phi b`` for some a of A and b of B, by a linear program."""
    n, phi = ambiguity.size, ambiguity.phi
    sums = np.kron(np.eye(2), np.ones((1, n)))
    rows = np.vstack([np.hstack([np.eye(n), -phi * np.eye(n)]), sums])
    caps = np.concatenate([ambiguity.worst.caps, ambiguity.best.caps]) + 1e-9
    right = np.concatenate([(1.0 - phi) * weights, [1.0, 1.0]])
    return bool(linprog(np.zeros(2 * n), A_eq=rows, b_eq=right, bounds=[(0.0, cap) for cap in caps]).status == 0)


def test_a_member_without_negative_entries_is_one_and_the_nearest_where_that_is_one() -> None:
    as_it_is, drawn = 0, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, phi = int(rng.integers(2, 7)), float(rng.choice([0.3, 0.5, 0.8]))
        shares = rng.dirichlet(np.ones(n))
        ambiguity = RelativeSet.of_weights(shares, phi, float(rng.choice([0.2, 0.6])), float(rng.choice([0.3, 1.0])))
        near = ambiguity.member(rng.normal(size=n)) if seed % 2 else rng.normal(size=n)
        found = positive_member(ambiguity, near, shares)
        assert found.min() >= 0 and is_member(ambiguity, found)
        clipped = np.maximum(near, 0.0) / max(float(np.maximum(near, 0.0).sum()), 1e-9)
        if clipped.sum() > 0.5 and is_member(ambiguity, clipped):
            np.testing.assert_allclose(found, clipped, atol=1e-8)
            as_it_is += 1
        drawn += not np.array_equal(found, shares)
    assert as_it_is > 40 and drawn > as_it_is


@pytest.mark.parametrize("sides", [(2.0, -0.5), (0.5, -2.0)])
def test_where_the_risk_is_not_above_a_height_the_weights_reach_as_far_as_is_said(sides: tuple[float, float]) -> None:
    """One site and two cuts, of the intercept alone: 0.5 + 2 b and 0.5 - b / 2, or the other way round."""
    slopes, units, upper = np.zeros((2, 3)), np.array([1.0, 4.0]), 0.7
    slopes[:, 2] = sides
    model = CutModel(
        np.ones(1), np.array([0.1]), np.zeros(2, dtype=np.intp), np.full(2, 0.5), slopes, np.zeros(2), "l2", 2,
        feature_scale=units,
    )
    reach = reach_of(model, upper)
    beyond = [np.diag(sign * reach)[k] * size for sign in (-1, 1) for k in range(3) for size in (0.999999, 1.000001)]
    inside = np.array([model.value(point) <= upper for point in beyond]).reshape(2, 3, 2)
    assert inside[:, :2, 0].all() and not inside[:, :2, 1].any(), "along a feature by the floor, both ways"
    assert inside[:, 2, 0].any() and not inside[:, 2, 1].any(), "along the intercept on the flatter side"
    assert (reach_of(replace(model, floor=np.zeros(1)), upper) == REACH).all()
    assert (reach_of(model, math.inf) == REACH).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_rows_of_a_rule_price_the_largest_sum_over_its_members(positive: bool, seed: int) -> None:
    """By the linear program over (a, b) itself; ``positive`` leaves out members that count a site below nothing."""
    random = np.random.default_rng(seed)
    ambiguity = RelativeSet.of_weights(random.dirichlet(np.full(5, 2.0)), 0.45, 0.4, 0.5)
    heights, n, phi = random.normal(size=5), 5, ambiguity.phi
    rule = RelativeRule(ambiguity, np.zeros(n), np.zeros(2), positive)
    program = rule.rows(heights)
    dual = linprog(
        program.cost[n:], program.rows[:, n:], -program.rows[:, :n] @ heights, bounds=(None, None), method="highs"
    )
    way, ones, none = np.eye(n), np.ones((1, n)), np.zeros((1, n))
    primal = linprog(
        np.concatenate([-heights, phi * heights]) / (1.0 - phi),
        np.hstack([-way, phi * way]) if positive else None, np.zeros(n) if positive else None,
        np.vstack([np.hstack([ones, none]), np.hstack([none, ones])]), np.ones(2),
        bounds=[(0.0, cap) for cap in (*ambiguity.worst.caps, *ambiguity.best.caps)], method="highs",
    )
    assert dual.fun == pytest.approx(-primal.fun, rel=1e-9)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("heights", [[-30.0, -2.0, -9.0], [30.0, 2.0, 9.0], [-30.0, 0.0, 30.0], [0.0, 0.0, 0.0]])
def test_the_rows_of_a_rule_begin_inside(positive: bool, heights: list[float]) -> None:
    ambiguity = RelativeSet.of_weights(np.full(3, 1.0 / 3.0), 0.6, 0.5, 0.5)
    program = RelativeRule(ambiguity, negative_lift(ambiguity), np.zeros(2), positive).rows(np.array(heights))
    inside = program.rows @ np.concatenate([heights, program.start])
    assert (inside[: 2 * 3] < 0.0).all() and (inside <= 0.0).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_a_majorant_is_its_least_value_over_the_cuts(seed: int) -> None:
    """Negative weights and all: the cuts are the risks themselves, so nothing is between the two."""
    random, count, dimension = np.random.default_rng(seed), 4, 3
    shares, site = random.dirichlet(np.full(count, 2.0)), np.repeat(np.arange(count), 6)
    slopes, peaks = random.normal(size=(len(site), dimension)), random.normal(size=(count, dimension))
    offsets = random.uniform(size=len(site)) - np.einsum("jd,jd->j", slopes, peaks[site])
    model = CutModel(shares, np.full(count, 0.3), site, offsets, slopes, np.zeros(len(site)), "l2", dimension)
    ambiguity, centre = RelativeSet.of_weights(shares, 0.45, 0.4, 0.5), random.normal(size=dimension)
    majorant = Majorant.around(centre, model, ambiguity)

    def value(point: FloatArray) -> float:
        return majorant.value(point, model.site_values(point[None])[0])

    found = minimise(model, centre, majorant.rule)
    bound = majorant.bound(model, found, np.full(dimension, 100.0))
    assert value(centre) == pytest.approx(ambiguity.largest(model.site_values(centre[None])[0]), rel=1e-12)
    assert bound == pytest.approx(value(found.point), rel=1e-8)
    assert all(value(found.point + size * random.normal(size=dimension)) >= bound for size in (1e-3, 0.1, 1.0, 10.0))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("floor", [0.0, 0.8])
def test_a_majorant_is_nowhere_below_the_objective_and_is_it_at_the_centre(norm: TransportNorm, floor: float) -> None:
    """Of cuts that the norm carries, and where a site is at its floor: the tangents have the norm's slope."""
    for seed in range(6):
        random, count, dimension = np.random.default_rng(seed), 4, 4
        shares, site = random.dirichlet(np.full(count, 2.0)), np.repeat(np.arange(count), 5)
        slopes, offsets = random.normal(size=(len(site), dimension)), random.uniform(0.0, 1.0, len(site))
        model = CutModel(
            shares, np.full(count, floor), site, offsets, slopes, random.uniform(0.0, 2.0, len(site)), norm, 3,
            feature_scale=np.array([1.0, 4.0, 0.3]),
        )
        ambiguity, centre = RelativeSet.of_weights(shares, 0.45, 0.4, 0.5), random.normal(size=dimension)
        majorant = Majorant.around(centre, model, ambiguity)
        steps = random.normal(size=(80, dimension)) * 10.0 ** random.uniform(-3, 1, (80, 1))
        points = np.vstack([centre, centre + steps])
        risks = model.site_values(points)
        above = np.array([majorant.value(*pair) for pair in zip(points, risks, strict=True)]) - ambiguity.totals(risks)
        assert above[0] == pytest.approx(0.0, abs=1e-9) and above.min() >= -1e-9


def test_the_lift_is_what_the_most_negative_weight_of_each_site_needs_and_no_more() -> None:
    needed = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        count = int(random.integers(2, 6))
        ambiguity = RelativeSet.of_weights(
            random.dirichlet(np.ones(count)), float(random.choice([0.0, 0.3, 0.7])),
            *(float(share) for share in random.uniform(0.1, 1.0, 2)),
        )
        least = np.array([-ambiguity.largest(-each) for each in np.eye(count)])
        np.testing.assert_allclose(negative_lift(ambiguity), np.maximum(-least, 0.0), atol=1e-9)
        needed += int(np.count_nonzero(least < -1e-6))
    assert needed > 30
