"""How far the best weights can be, and what a slope takes off on the way: from both sides, by other formulas."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from models.basics import FloatArray, TransportNorm
from models.cuts import bounds
from models.cuts.best_weights import analytic_centre, intercept_charge, intercept_range, tilt_charge
from models.cuts.cut_model import CutModel
from models.cuts.evidence import Evidence
from models.cuts.lower_bound import tilted_lower_bound
from models.geometry.norms import dual_norms
from tests.models.cuts.told import problem_of


def model_of(
    offset: FloatArray, slope: FloatArray, norm_weight: FloatArray, *, floor: float, norm: TransportNorm = "l1"
) -> CutModel:
    """Cuts dealt in turn to two sites with weights 3/4 and 1/4, whose intercept is the last weight."""
    site, width = np.arange(len(offset)) % 2, slope.shape[1] - 1
    return CutModel(
        np.array([0.75, 0.25]), np.full(2, floor), site, offset, slope, norm_weight, norm, width,
        feature_scale=np.linspace(0.5, 2.0, width),
    )


@pytest.mark.parametrize("carried", [0.0, -0.3])
def test_the_intercept_ends_where_a_corner_of_the_weights_within_reach_lets_it(carried: float) -> None:
    """In l1 the weights within reach are a box, and what a cut has least is at a corner of it."""
    random = np.random.default_rng(2)
    model = model_of(
        random.uniform(0.1, 0.4, 6), np.column_stack([random.normal(size=(6, 2)), [1.0, -0.5, 0.7, -1.5, -0.2, 0.4]]),
        np.full(6, carried), floor=0.2,
    )
    upper, support = 0.9, 0.2
    reach = upper / support
    corners = np.array(list(product([-reach, reach], repeat=2))) / model.units
    ends: dict[float, list[float]] = {1.0: [], -1.0: []}
    for g, offset, slope in zip(model.site, model.offset, model.slope, strict=True):
        room = upper / model.site_weights[g] - offset - (corners @ slope[:2] + carried * reach).min()
        ends[float(np.sign(slope[2]))].append(room / slope[2])
    assert intercept_range(model, upper, support) == pytest.approx((max(ends[-1.0]), min(ends[1.0])))


def test_an_intercept_is_charged_from_the_reference_to_the_far_end() -> None:
    """``max(1/2 + b, 1/2 - b)`` is not above its value at b = 0.3 from -0.3 to 0.3, and from -0.3 on likewise."""
    one = np.ones(1)
    cuts, slopes = np.full(2, 0.5), np.array([[0.0, 1.0], [0.0, -1.0]])
    model = CutModel(one, 0.1 * one, np.zeros(2, dtype=np.intp), cuts, slopes, np.zeros(2), "l2", 1)
    for at in (0.3, -0.3):
        assert intercept_charge(model, cuts, np.array([-0.2]), np.array([0.0, at]), 0.1) == pytest.approx(0.2 * 0.6)
    assert intercept_charge(model, cuts, np.zeros(1), np.array([0.0, 0.3]), 0.1) == 0.0


def _no_norm() -> tuple[CutModel, FloatArray]:
    """Cuts around 0 in three weights, without a norm, and multipliers that leave a slope and something for floors."""
    random = np.random.default_rng(8)
    ways = np.vstack([np.eye(3), -np.eye(3), -np.eye(3), np.eye(3)])
    slopes = ways + 0.1 * random.normal(size=(12, 3))
    model = model_of(random.uniform(0.4, 0.6, 12), slopes, np.zeros(12), floor=0.0, norm="l2")
    return model, np.where(model.site == 0, 0.08, 0.03) * random.uniform(0.9, 1.1, 12)


def test_what_a_slope_takes_off_without_a_norm_is_the_ellipsoid_of_the_rows_of_its_multipliers() -> None:
    """``(v' S^-1 v)^(1/2)``, S^-1 the weights' part of the inverse of R'R with the heights still in it."""
    model, cuts = _no_norm()
    reference, tilt = np.array([0.05, -0.02, 0.03]), np.array([0.1, 0.2, -0.15])
    rest = model.site_weights - np.bincount(model.site, weights=cuts)
    rows = np.vstack([
        np.hstack([model.slope, -np.eye(2)[model.site]]) * cuts[:, None],
        np.hstack([np.zeros((2, 3)), -np.eye(2)]) * rest[:, None],
    ])
    inverse = np.linalg.inv(rows.T @ rows)[:3, :3]
    slope, height = cuts @ model.slope, float(cuts @ (model.offset + model.slope @ reference))
    own, upper = float(np.sqrt(slope @ inverse @ slope)), model.value(reference)
    assert (rest > 0.1 * model.site_weights).all() and 0.05 < own < 0.9
    charge = tilt_charge(model, cuts, tilt, reference)
    assert charge == pytest.approx(np.sqrt(tilt @ inverse @ tilt) * 2.0 * (upper - height) / (1.0 - own), rel=1e-9)
    around = reference + 0.1 * np.random.default_rng(3).normal(size=(4000, 3))
    inside = around[[model.value(point) <= upper for point in around]]
    assert len(inside) > 5 and np.abs((inside - reference) @ tilt).max() <= charge


def test_multipliers_of_the_centre_count_every_cut_and_leave_no_slope() -> None:
    model, _ = _no_norm()
    for reference in (np.zeros(3), np.array([0.3, -0.2, 0.4])):
        found = analytic_centre(model, reference)
        assert found is not None and (found > 1e-3 * model.site_weights[model.site]).all()
        np.testing.assert_allclose(found @ model.slope, 0.0, atol=1e-12)
        assert (np.bincount(model.site, weights=found) <= model.site_weights).all()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("swing", [0.0, 0.4])
def test_a_tilted_bound_of_one_cut_is_its_minimum_in_the_box(norm: TransportNorm, swing: float) -> None:
    """With multiplier 1: what the swing takes of the slope costs nothing, and the rest the whole of the reach."""
    one = np.ones(1)
    slope, tilt, reach = np.array([[0.5, -0.2, 0.1]]), np.array([-0.2, 1.0, 0.3]), np.array([0.5, 2.0, 3.0])
    model = CutModel(
        one, 0.0 * one, np.zeros(1, dtype=np.intp), np.array([4.0]), slope, 0.0 * one, norm, 2,
        swing=np.full((1, 2), swing) if swing else None,
    )
    grid = np.array(list(product([-1.0, 0.0, 1.0], repeat=3))) * reach
    least = min(4.0 + (slope[0] + tilt) @ point + swing * np.abs(point[:2]).sum() for point in grid)
    assert tilted_lower_bound(model, one, tilt, reach) == pytest.approx(least, rel=1e-14)
    stretched = replace(model, norm_weight=0.3 * one)
    found = tilted_lower_bound(stretched, one, tilt, reach)
    assert least < found <= min(
        4.0 + (slope[0] + tilt) @ point + swing * np.abs(point[:2]).sum()
        + 0.3 * float(dual_norms(point[None, :2], norm)[0]) for point in grid
    ) + 1e-12


def test_programs_need_come_as_near_as_a_twentieth_of_what_is_not_known() -> None:
    nothing = Evidence.empty(problem_of())
    assert bounds.enough(nothing) == 0.0
    assert bounds.enough(replace(nothing, upper=3.0, lower=1.0)) == pytest.approx(0.1)
    assert bounds.enough(replace(nothing, upper=1.0, lower=1.0)) == 0.0
