"""Tuned by "auto" an estimator has its features by their ranges, as a plan has; what it tells is in their own units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.estimators import DRSVC, FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC
from models.estimators.scaling import RangeScaling
from models.features.lift import Lift
from models.features.likely_range import range_for_classes
from models.features.products import product_lift
from models.features.scaled import ScaledProducts
from models.features.spline import SplineLift, spline_lift
from models.losses.regression import Pinball
from models.multiclass import predict_scores
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk

UNITS, FROM = np.array([2.0**12, 2.0**-9]), np.array([2.0**20, -(2.0**-3)])
"""Powers of two: scaled back, the rows are the same to the last bit, and so are their folds."""
ROUGH: dict[str, Any] = {"tuning": "auto", "gap": 0.05}
RAMPS: dict[str, Any] = {**ROUGH, "lift": "spline", "lift_size": 3}
"""Radii are tuned, and no lift beside the one that is given."""


def rows(kind: str, count: int = 72) -> tuple[Any, Any, Any]:
    """Features (N, 2) over all of [0, 1], classes that planes, splines or products tell, and groups."""
    draw = np.random.default_rng(7)
    features = draw.integers(0, 257, size=(count, 2)) / 256.0
    features[:2] = [[0.0, 1.0], [1.0, 0.0]]
    x, y = features.T - 0.5
    score = {"plane": x - 0.5 * y, "spline": np.abs(x) - 0.25, "products": x * y}[kind]
    return features, np.where(score > 0.0, "leak", "whole"), np.arange(count) % 2


@pytest.mark.parametrize("lift", [
    None, spline_lift(2, 3), product_lift(2, (0, 1), squares=True), product_lift(2, (0, 1), squares=True, segments=3),
], ids=["none", "spline", "products", "products of lines"])
def test_planes_score_alike_in_both_units(lift: Lift | None) -> None:
    features = FROM + UNITS * rows("plane")[0]
    scaling, draw = RangeScaling.of(features, moved=True), np.random.default_rng(1)
    planes, own = draw.normal(size=(3, (2 if lift is None else lift.n_outputs) + 1)), scaling.lift(lift)
    scaled = scaling.scale(features)
    given = predict_scores(scaling.planes(planes, lift), features if own is None else own.apply(features))
    np.testing.assert_allclose(given, predict_scores(planes, scaled if lift is None else lift.apply(scaled)), atol=1e-9)


@pytest.mark.parametrize("kind", ["plane", "spline", "products"])
def test_units_of_the_features_change_nothing_and_what_is_told_is_in_them(kind: str) -> None:
    features, labels, groups = rows(kind)
    given = FROM + UNITS * features
    scaled = FederatedDRSVC(**ROUGH).fit(features, labels, groups=groups)
    model = FederatedDRSVC(**ROUGH).fit(given, labels, groups=groups)
    np.testing.assert_array_equal(model.feature_scale_, UNITS)
    assert model.tuning_why_ == scaled.tuning_why_ and model.radius_ == scaled.radius_
    assert model.worst_case_risk_ == pytest.approx(scaled.worst_case_risk_)
    np.testing.assert_allclose(model.decision_function(given), scaled.decision_function(features), atol=1e-6)
    np.testing.assert_array_equal(model.predict_set(given, 0.8), scaled.predict_set(features, 0.8))
    np.testing.assert_allclose(model.predict_proba(given), scaled.predict_proba(features), atol=1e-6)

    own = model.lift_
    if kind != "plane":
        assert isinstance(own, SplineLift if kind == "spline" else ScaledProducts)
    seen = given if own is None else own.apply(given)
    np.testing.assert_allclose(model.decision_function(given), seen @ model.coef_[0] + model.intercept_[0])

    radius, told, draw = model.robustness_radius(given), model.predict(given), np.random.default_rng(0)
    assert (radius > 0).any() and (radius[np.isfinite(radius)] < 2.0 * np.linalg.norm(UNITS)).all()
    for way in (draw.normal(size=given.shape), np.array([0.0, 1.0]) * draw.choice([-1.0, 1.0], (len(given), 1))):
        step = np.where(np.isfinite(radius), 0.999 * radius, 0.0) / np.linalg.norm(way, axis=1)
        assert (model.predict(given + way * step[:, None]) == told).all()


def test_the_risk_is_over_balls_of_shares_of_the_ranges() -> None:
    features, labels, groups = rows("plane")
    given = FROM + UNITS * features
    model = FederatedDRSVC(calibration_folds=0, **RAMPS).fit(given, labels, groups=groups)
    unit = np.repeat(model.feature_scale_, 3)
    ramps, plane = model.lift_.apply(given) / unit, np.append(model.coef_[0] * unit, model.intercept_)
    signs = np.where(labels == "whole", 1.0, -1.0)
    risks = [
        site_risk(plane, SiteProblem(ramps[groups == g], signs[groups == g], RobustSpec(model.radius_[g], 1.0))).value
        for g in (0, 1)
    ]
    assert model.worst_case_risk_ == pytest.approx(np.mean(risks), rel=1e-9)
    assert model.objective_lower_bound_ <= model.worst_case_risk_


def test_intervals_are_those_of_scaled_features() -> None:
    features, _, groups = rows("plane")
    targets = 300.0 * np.abs(features[:, 0] - 0.5) + features[:, 1]
    model = FederatedDRRegressor(loss="pinball", **RAMPS).fit(FROM + UNITS * features, targets, groups=groups)
    scaled = FederatedDRRegressor(loss="pinball", **RAMPS).fit(features, targets, groups=groups)
    given = FROM + UNITS * features
    np.testing.assert_allclose(model.predict(given), scaled.predict(features), rtol=1e-6)
    np.testing.assert_allclose(model.predict_interval(given, 0.8), scaled.predict_interval(features, 0.8), rtol=1e-6)


@pytest.mark.parametrize("loss, unit", [("huber", 2.0**-20), ("epsilon_insensitive", 2.0**-20), ("pinball", 2.0**20)])
def test_the_unit_of_the_target_changes_nothing_either(loss: Any, unit: float) -> None:
    """Else a ball of moves of 1 is all that a target of some 1e-6 has for a risk: trained to no gap is a constant."""
    features, _, groups = rows("plane")
    targets = 300.0 * np.abs(features[:, 0] - 0.5) + features[:, 1]
    scaled = FederatedDRRegressor(loss=loss, **RAMPS).fit(features, targets, groups=groups)
    model = FederatedDRRegressor(loss=loss, **RAMPS).fit(features, unit * targets, groups=groups)
    assert model.target_scale_ == unit * scaled.target_scale_ == unit * float(np.ptp(targets))
    of_the_loss = unit**2 if loss == "huber" else unit
    assert model.worst_case_risk_ == pytest.approx(of_the_loss * scaled.worst_case_risk_, rel=1e-6)
    np.testing.assert_allclose(model.predict(features), unit * scaled.predict(features), rtol=1e-6)
    intervals = [[each.predict_interval(features, 0.8, "conformal"), each.predict_interval(features, 0.8, "markov")]
                 for each in (model, scaled)]
    np.testing.assert_allclose(intervals[0], unit * np.array(intervals[1]), rtol=1e-5)
    assert [each["label_flip_cost"] for each in model.tuning_curve_] == pytest.approx([1.0] * len(model.tuning_curve_))
    assert np.abs(model.predict(features) - unit * targets).mean() < 0.3 * unit * np.std(targets)


def test_the_risk_over_shares_of_the_targets_range_is_that_of_the_scaled_target() -> None:
    features, _, groups = rows("plane")
    targets = 7e-6 * features[:, 0] + 2e-6 * features[:, 1] ** 2
    model = FederatedDRRegressor(loss="pinball", target_cost=0.5, calibration_folds=0, **RAMPS)
    model.fit(features, targets, groups=groups)
    scale, ramps = model.target_scale_, model.lift_.apply(features)
    plane = np.append(model.coef_, model.intercept_) / scale
    risks = [
        site_risk(plane, SiteProblem(
            ramps[groups == g], targets[groups == g] / scale, RobustSpec(model.radius_[g], 0.5, loss=Pinball())
        )).value for g in (0, 1)
    ]
    assert model.worst_case_risk_ == pytest.approx(scale * np.mean(risks), rel=1e-6)


def test_a_sensor_in_a_hundredth_of_0_to_1_is_in_another_unit() -> None:
    features, labels, groups = rows("plane")
    for share, scaled in ((0.009, True), (0.02, False)):
        given = features * [1.0, share]
        model = FederatedDRSVC(calibration_folds=0, **RAMPS).fit(given, labels, groups=groups)
        assert model.feature_scale_.tolist() == [1.0, share if scaled else 1.0]


@pytest.mark.parametrize("terms", [
    {"tuning": None}, {"tuning": {"radius": [1.0, 3.0], "folds": 3}},
    {"tuning": "auto", "lift": product_lift(2, (0, 1))}, {"tuning": "auto", "support": (-1e7, 1e7)},
], ids=["stated", "grid", "lift", "support"])
def test_stated_terms_are_of_the_features_as_they_are(terms: dict[str, Any]) -> None:
    features, labels, groups = rows("plane")
    model = FederatedDRSVC(gap=1e-2, calibration_folds=0, **terms).fit(features, labels, groups=groups)
    assert model.feature_scale_.tolist() == [1.0, 1.0]


def test_features_that_all_lie_between_0_and_1_are_scaled_already() -> None:
    features, labels, groups = rows("plane")
    for share, scaled in ((0.75, False), (1.25, True)):
        model = FederatedDRSVC(calibration_folds=0, **RAMPS).fit(share * features, labels, groups=groups)
        assert model.feature_scale_.tolist() == [share if scaled else 1.0] * 2


def test_without_an_intercept_there_is_none_and_ranges_begin_at_nothing() -> None:
    features, labels, groups = rows("plane")
    model = FederatedDRSVC(fit_intercept=False, calibration_folds=0, **ROUGH)
    model.fit(UNITS * (features - 0.5), labels, groups=groups)
    assert model.intercept_.tolist() == [0.0] and model.feature_scale_ == pytest.approx(0.5 * UNITS)


def test_a_feature_that_never_changes_tells_nothing_and_one_beyond_all_numbers_is_refused() -> None:
    features, labels, groups = rows("plane")
    still = np.column_stack([features, np.full(len(features), 3e9)])
    model = DRSVC(calibration_folds=0, **ROUGH).fit(still, labels)
    assert model.score(still, labels) > 0.9
    features[:2, 0] = [-1e308, 1e308]
    few = slice(12)  # of many rows two readings would be likely mistakes
    with pytest.raises(ProblemError, match="range is beyond what can be computed with"):
        FederatedDRClassifier(**ROUGH).fit(features[few], labels[few], groups=groups[few])


def test_ranges_too_narrow_for_their_values_count_as_none() -> None:
    ranges = RangeScaling.of(np.array([[1.0, 5.0], [1.0 + 1e-12, 7.0]]), moved=True)
    np.testing.assert_allclose(ranges.width, [2.0, 2.0])


def tails(count: int = 200) -> tuple[Any, Any, Any]:
    """Features (N, 2), the first with long tails and the second with one mistyped reading, classes and groups."""
    draw = np.random.default_rng(3)
    features = np.column_stack([draw.standard_t(1.2, count), draw.uniform(-2.0, 2.0, count)])
    features[7, 1] = 4e6
    score = np.arctan(features[:, 0]) - 0.5 * np.minimum(features[:, 1], 2.0)
    return features, np.where(score > 0.0, "leak", "whole"), np.arange(count) % 2


def test_auto_cuts_long_tails_and_mistakes_as_a_drafted_range_does() -> None:
    features, labels, groups = tails()
    model = FederatedDRSVC(calibration_folds=2, **RAMPS).fit(features, labels, groups=groups)
    ends = np.transpose([range_for_classes(each, np.ones(len(each))) for each in features.T])
    drafted = np.transpose([range_for_classes(each) for each in features.T])
    assert model.feature_range_[:, 0].tolist() == ends[:, 0].tolist() and model.feature_range_[1, 1] == ends[1, 1] < 2.0
    assert model.feature_range_[0, 1] == -np.inf, "an end that all readings keep is none"
    np.testing.assert_allclose(ends, drafted, atol=0.25 * np.ptp(drafted, axis=0).min())
    assert model.feature_scale_ == pytest.approx(ends[1] - ends[0])
    cut = np.clip(features, *ends)
    same = FederatedDRSVC(calibration_folds=2, **RAMPS).fit(cut, labels, groups=groups)
    np.testing.assert_allclose(model.decision_function(features), same.decision_function(cut), atol=1e-9)
    np.testing.assert_array_equal(model.robustness_radius(features), model.robustness_radius(cut))
    assert model.score(features, labels) > 0.9


def test_what_lies_beyond_the_cut_is_told_as_its_end_is_by_a_plane_too() -> None:
    features, labels, groups = tails()
    terms: dict[str, Any] = {"tuning": "auto", "gap": 1e-2, "calibration_folds": 2}
    model = DRSVC(**terms).fit(features, labels)
    far = np.array([[1e9, 0.0], [-1e9, 0.0], [0.0, 5e6]])
    near = np.clip(far, *model.feature_range_)
    assert (np.abs(near) < 1e3).all()
    for told in (model.decision_function, model.predict_proba, model.predict_set, model.robustness_radius):
        np.testing.assert_array_equal(told(far), told(near))
    targets = features[:, 1].clip(-2.0, 2.0) + 3.0 * features[:, 0]
    estimator = FederatedDRRegressor(loss="pinball", **terms).fit(features, targets, groups=groups)
    assert np.isinf(estimator.feature_range_[:, 0]).all(), "of a target mistakes alone are cut"
    assert estimator.feature_range_[1, 1] < 2.0
    near = np.clip(far, *estimator.feature_range_)
    np.testing.assert_array_equal(estimator.predict(far), estimator.predict(near))
    np.testing.assert_array_equal(estimator.predict_interval(far), estimator.predict_interval(near))


def test_a_cut_is_the_same_for_a_row_that_counts_twice_and_for_two() -> None:
    features, labels, groups = tails(120)
    counts = np.where(np.abs(features[:, 0]) < 1.0, 3.0, 1.0)
    twice = np.repeat(np.arange(120), counts.astype(int))
    weighted = FederatedDRSVC(calibration_folds=0, **RAMPS).fit(features, labels, groups=groups, sample_weight=counts)
    copied = FederatedDRSVC(calibration_folds=0, **RAMPS).fit(features[twice], labels[twice], groups=groups[twice])
    np.testing.assert_array_equal(weighted.feature_range_, copied.feature_range_)
    np.testing.assert_array_equal(weighted.coef_, copied.coef_)


def test_stated_terms_cut_nothing() -> None:
    features, labels, groups = tails(60)
    model = FederatedDRSVC(gap=1e-2, calibration_folds=0).fit(features, labels, groups=groups)
    assert np.isinf(model.feature_range_).all()


def test_estimates_are_cut_to_the_range_of_the_target_that_a_box_states() -> None:
    features, _, groups = rows("plane")
    targets = np.clip(2.0 * features[:, 0] - 0.5, 0.0, 1.0)
    terms: dict[str, Any] = {"loss": "pinball", "gap": 1e-2, "radius": 1e-4}
    free = FederatedDRRegressor(support=(0.0, 1.0), **terms).fit(features, targets, groups=groups)
    held = FederatedDRRegressor(support=(0.0, 1.0, 0.0, 1.0), **terms).fit(features, targets, groups=groups)
    assert free.predict(features).min() < 0.0
    assert held.predict(features).min() == 0.0 and held.predict(features).max() <= 1.0
    for method in ("conformal", "markov"):
        assert free.predict_interval(features, 0.8, method).min() < 0.0  # type: ignore[arg-type]
        found = held.predict_interval(features, 0.8, method)  # type: ignore[arg-type]
        assert found.min() == 0.0 and found.max() == 1.0
