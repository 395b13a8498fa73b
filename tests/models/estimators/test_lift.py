"""Estimators that lift: splines over the data's ranges, in the units of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons

from models.basics import ProblemError, TransportNorm
from models.estimators import DRSVC, FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC
from models.features.fourier import fourier_lift
from models.features.products import product_lift
from models.features.spline import spline_lift
from models.geometry.norms import vector_norm


def moons(n: int = 160) -> tuple[Any, Any]:
    features, labels = make_moons(n, noise=0.15, random_state=3)
    return features * [40.0, 3.0] + [100.0, -7.0], labels


def test_one_segment_is_the_linear_model() -> None:
    features, labels = moons()
    plain = DRSVC(radius=0.1, label_flip_cost=4.0, calibration_folds=0).fit(features, labels)
    line = DRSVC(radius=0.1, label_flip_cost=4.0, calibration_folds=0, lift="spline", lift_size=1).fit(features, labels)
    assert line.worst_case_risk_ == pytest.approx(plain.worst_case_risk_, rel=2e-4)
    np.testing.assert_allclose(line.decision_function(features), plain.decision_function(features), atol=0.02)


def test_splines_tell_what_no_plane_tells_and_cost_no_worst_case() -> None:
    draw = np.random.default_rng(0)
    features = draw.uniform(-30.0, 50.0, (240, 2))
    labels = np.where(np.abs(features[:, 0] - 10.0) > 20.0, "bad", "good")
    plain = DRSVC(radius=0.2, label_flip_cost=10.0, calibration_folds=0).fit(features, labels)
    model = DRSVC(radius=0.2, label_flip_cost=10.0, lift="spline", lift_size=6).fit(features, labels)
    assert model.score(features, labels) > 0.95 > plain.score(features, labels) + 0.15
    assert model.worst_case_risk_ < plain.worst_case_risk_  # the plane is one of the curves
    assert model.certified_gap_ <= 1e-4 and model.coef_.shape == (1, 12)
    assert (model.predict_proba(features[:9]).argmax(axis=1) == (model.predict(features[:9]) == "good")).all()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_radius_is_in_the_units_of_the_features(norm: TransportNorm) -> None:
    features, labels = moons()
    model = DRSVC(
        radius=0.05, label_flip_cost=4.0, transport_norm=norm, lift="spline", lift_size=5, calibration_folds=0
    ).fit(features, labels)
    rows = features[:15]
    radius, told = model.robustness_radius(rows), model.predict(rows)
    low, high = features.min(axis=0), features.max(axis=0)
    grid = np.stack(np.meshgrid(*np.linspace(low, high, 250).T), axis=-1).reshape(-1, 2)
    classes, shares = model.predict(grid), list[float]()
    for row, size, name in zip(rows, radius, told, strict=True):
        nearest = vector_norm(grid[classes != name] - row, norm).min()
        assert size <= nearest
        shares.append(size / nearest)
    assert np.median(shares) > 0.85


def test_federated_estimators_lift_alike_at_all_sites() -> None:
    features, labels = moons()
    groups = np.arange(len(labels)) % 3
    model = FederatedDRSVC(radius=0.05, label_flip_cost=4.0, lift="spline", method="level-bundle", calibration_folds=0)
    model.fit(features, labels, groups=groups)
    drfl = FederatedDRClassifier(radius=0.05, label_flip_cost=4.0, lift="spline", calibration_folds=0)
    drfl.fit(features, labels, groups=groups)
    assert model.worst_case_risk_ == pytest.approx(drfl.worst_case_risk_, rel=3e-4)
    np.testing.assert_array_equal(model.lift_.knots, drfl.lift_.knots)
    assert clone(model).lift == "spline"


def test_a_regression_bends() -> None:
    draw = np.random.default_rng(1)
    features = draw.uniform(0.0, 6.0, (200, 1))
    targets = np.abs(features[:, 0] - 2.0)
    settings: dict[str, Any] = {"radius": 1e-3, "epsilon": 0.05, "calibration_folds": 0}
    groups = np.arange(200) % 2
    plain = FederatedDRRegressor(**settings).fit(features, targets, groups=groups)
    model = FederatedDRRegressor(lift="spline", lift_size=6, **settings).fit(features, targets, groups=groups)
    assert model.score(features, targets) > 0.99 > plain.score(features, targets)
    far = model.predict([[50.0], [features.max()]])
    assert far[0] == pytest.approx(far[1])


def test_a_given_lift_takes_the_features_as_they_are() -> None:
    features, labels = moons()
    scaled = (features - features.min(axis=0)) / np.ptp(features, axis=0)
    lift = fourier_lift(2, 30, bandwidth=0.3, seed=0)
    model = DRSVC(radius=1e-3, lift=lift, calibration_folds=0).fit(scaled, labels)
    assert model.score(scaled, labels) > 0.95
    assert (model.robustness_radius(scaled) > 0).all()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_products_of_lines_tell_what_lines_and_products_tell_alone(norm: TransportNorm) -> None:
    draw = np.random.default_rng(2)
    rows = draw.uniform(size=(200, 2))
    x, y = rows.T - 0.5
    labels = np.where(np.abs(x) + 4.0 * x * y > 0.25, "bad", "good")
    settings: dict[str, Any] = {
        "radius": 5e-3, "label_flip_cost": 10.0, "transport_norm": norm, "calibration_folds": 0, "gap": 1e-4,
    }
    lifts = [product_lift(2, (0, 1), segments=6), product_lift(2, (0, 1)), spline_lift(2, 6)]
    both, products, lines = (DRSVC(lift=lift, **settings).fit(rows, labels) for lift in lifts)
    assert both.coef_.shape == (1, 13) and both.certified_gap_ <= 1e-4
    assert both.score(rows, labels) > max(products.score(rows, labels), lines.score(rows, labels)) + 0.02
    assert both.worst_case_risk_ <= lines.worst_case_risk_ * (1.0 + 2e-4), "without products they are the lines"
    if norm == "l1":  # equal slopes of a line cost there what one costs
        assert both.worst_case_risk_ <= products.worst_case_risk_ * (1.0 + 2e-4)
    radius, told = both.robustness_radius(rows), both.predict(rows)
    assert (radius > 0).all()
    for way in draw.normal(size=(10, *rows.shape)):
        step = 0.999 * radius / vector_norm(way, norm)
        assert (both.predict(rows + way * step[:, None]) == told).all()


def test_a_tuning_of_products_of_lines_says_their_segments() -> None:
    draw = np.random.default_rng(3)
    rows = draw.uniform(size=(90, 2))
    labels, tuning = np.where(rows[:, 0] > 0.5, "bad", "good"), {"radius": [1.0, 3.0], "folds": 3}
    for segments, said in ((1, 0), (4, 4)):
        lift = product_lift(2, (0, 1), segments=segments)
        model = DRSVC(radius=1e-2, lift=lift, tuning=tuning, calibration_folds=0).fit(rows, labels)
        assert {(each["lift"], each["segments"]) for each in model.tuning_curve_} == {("products", said)}
        assert model.lift_.n_outputs == lift.n_outputs == model.coef_.shape[1]


@pytest.mark.parametrize(("settings", "said"), [
    ({"lift": "fourier"}, "None, 'spline' or a lift"),
    ({"lift": 3}, "None, 'spline' or a lift"),
    ({"lift": "spline", "lift_size": 0}, "lift_size must be a whole number"),
    ({"lift": "spline", "support": (0.0, 300.0)}, "leave out the lift, or the support"),
    ({"lift": product_lift(3, (0, 1))}, "the lift takes 3 features, the data have 2"),
])
def test_refusals(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ProblemError, match=said):
        DRSVC(**settings).fit(*moons())


def test_sets_and_intervals_of_a_lifted_model_cover_and_are_those_of_the_lifted_rows() -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(-2.0, 5.0, (240, 2))
    y = np.where(np.abs(X[:, 0] - 1.5) + 0.3 * rng.standard_normal(240) > 1.5, "far", "near")
    groups = np.arange(240) % 3
    model = FederatedDRClassifier(lift="spline", lift_size=4, gap=1e-2).fit(X, y, groups)
    inside = model.predict_set(X, 0.9)
    truth = np.searchsorted(model.classes_, y)
    assert inside.shape == (240, 2) and inside[np.arange(240), truth].mean() > 0.9
    target = np.abs(X[:, 0] - 1.5) + 0.1 * rng.standard_normal(240)
    regressor = FederatedDRRegressor(loss="pinball", lift="spline", lift_size=4, gap=1e-2).fit(X, target, groups)
    ends = regressor.predict_interval(X, 0.9)
    assert ((ends[:, 0] <= target) & (target <= ends[:, 1])).mean() > 0.85
    assert (ends[:, 1] - ends[:, 0]).mean() < 1.5
