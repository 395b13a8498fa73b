"""The estimators of DRFL: scikit-learn's own checks, agreement with the whole problem, limits, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from models.basics import ProblemError
from models.estimators import FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem
from models.site_ambiguity.ball import MixtureBall
from tests.models.estimators.conduct import checked
from tests.oracles.whole_problem import solve_whole

CLASSIFICATION = ("hinge", "smooth_hinge", "logistic")
REGRESSION = ("huber", "epsilon_insensitive", "pinball")
NORMS = ("l1", "l2", "linf")
ROUGH = 0.5
"""Gap that is enough where a test is not of the optimum."""


def rows(seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, scores and groups of three clients."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, p))
    groups = rng.integers(3, size=n)
    groups[:3] = np.arange(3)
    return features, features @ rng.normal(size=p) + 0.5 * rng.normal(size=n) + 0.5 * groups, groups


@pytest.mark.parametrize(("loss", "folds"), [("hinge", 3), ("logistic", 0)])
def test_the_classifier_passes_the_checks_of_scikit_learn(loss: str, folds: int) -> None:
    """The checks are of conduct: a rough gap will do, a loss with corners and a smooth one, and folds of one."""
    checked(FederatedDRClassifier(loss=loss, radius=0.01, gap=ROUGH, calibration_folds=folds))


@pytest.mark.parametrize(("loss", "folds"), [("pinball", 2), ("huber", 0)])
def test_the_regressor_passes_the_checks_of_scikit_learn(loss: str, folds: int) -> None:
    """As for the classifier: the folds, which take more fits, of one of the two."""
    checked(FederatedDRRegressor(loss=loss, gap=ROUGH, calibration_folds=folds))


@settings(max_examples=16, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(CLASSIFICATION + REGRESSION),
    norm=st.sampled_from(NORMS),
    client_norm=st.sampled_from([1, 2, math.inf]),
    theta=st.sampled_from([0.0, 0.2, 2.0]),
    radius=st.sampled_from([0.0, 0.05]),
    cost=st.sampled_from([0.5, 2.0, math.inf]),
    folds=st.sampled_from([0, 2]),
)
def test_fits_reach_the_optimum_of_the_whole_problem(
    seed: int, loss: str, norm: str, client_norm: float, theta: float, radius: float, cost: float, folds: int
) -> None:
    features, scores, groups = rows(seed, 45, 3)
    shared: dict[str, Any] = {
        "radius": radius, "client_radius": theta, "client_norm": client_norm, "transport_norm": norm, "gap": 1e-6,
        "calibration_folds": folds,
    }
    model: Any
    if loss in CLASSIFICATION:
        labels = np.where(scores > 0, 1.0, -1.0)
        labels[:2] = (1.0, -1.0)
        model = FederatedDRClassifier(loss=loss, label_flip_cost=cost, **shared).fit(features, labels, groups=groups)
    else:
        labels = scores
        model = FederatedDRRegressor(loss=loss, target_cost=cost, **shared).fit(features, labels, groups=groups)
    spec = RobustSpec(radius, cost, norm, loss=get_loss(loss))
    sites = [SiteProblem(features[groups == g], labels[groups == g], spec) for g in range(3)]
    ball = MixtureBall({1: "l1", 2: "l2", math.inf: "linf"}[client_norm], theta)
    best = solve_whole(sites, None, ball).value
    assert model.worst_case_risk_ == pytest.approx(best, rel=1e-5, abs=1e-7)
    assert model.worst_case_risk_ * (1 - model.certified_gap_) <= best + 1e-7
    assert sum(model.client_weights_.values()) == pytest.approx(1.0)
    mixed = sum(model.client_weights_[g] * model.site_risks_[g] for g in range(3))
    assert mixed == pytest.approx(model.worst_case_risk_, rel=1e-9)


@pytest.mark.parametrize(("loss", "theta"), [("hinge", 0.3), ("smooth_hinge", 0.0), ("logistic", 0.3)])
def test_raw_unscaled_features_are_solved_to_the_gap(loss: str, theta: float) -> None:
    features, labels = (each[::3] for each in load_breast_cancer(return_X_y=True))
    groups = np.arange(len(labels)) % 3
    model = FederatedDRClassifier(loss=loss, radius=0.01, client_radius=theta, calibration_folds=0)
    model.fit(features, labels, groups=groups)
    assert model.certified_gap_ <= 1e-4
    assert model.score(features, labels) > 0.9


@pytest.mark.parametrize("loss", REGRESSION)
def test_raw_regression_is_solved_to_the_gap(loss: str) -> None:
    features, targets = (each[::2] for each in load_diabetes(return_X_y=True))
    model = FederatedDRRegressor(loss=loss, radius=1e-4, client_radius=0.2, calibration_folds=0)
    model.fit(features, targets, groups=np.arange(len(targets)) % 3)
    assert model.certified_gap_ <= 1e-4
    assert model.score(features, targets) > 0.35
    low, high = model.predict_interval(features, 0.9, method="markov").T
    assert np.mean((low <= targets) & (targets <= high)) >= 0.9


@pytest.mark.parametrize("given", [{}, {"method": "level-bundle"}, {"lift": "spline", "loss": "pinball"}])
def test_targets_far_from_0_are_fitted_as_those_around_it(given: dict[str, Any]) -> None:
    features, scores, groups = rows(5, 60, 3)
    scores = np.round(scores, 6)
    near, far = (
        FederatedDRRegressor(calibration_folds=2, **given).fit(features, scores + moved, groups=groups)
        for moved in (0.0, 2.0**20)
    )
    assert far.certified_gap_ <= 1e-4
    assert far.worst_case_risk_ == pytest.approx(near.worst_case_risk_, rel=3e-4)
    assert far.intercept_ - 2.0**20 == pytest.approx(near.intercept_, abs=0.02)
    for method in ("conformal", "markov"):
        moved = far.predict_interval(features, method=method) - 2.0**20
        assert moved == pytest.approx(near.predict_interval(features, method=method), abs=0.02)


def test_without_a_ball_over_the_clients_it_is_the_federated_svm() -> None:
    features, scores, groups = rows(1, 60, 3)
    labels = scores > 0
    ours = FederatedDRClassifier(radius=0.02, calibration_folds=0).fit(features, labels, groups=groups)
    other = FederatedDRSVC(radius=0.02, calibration_folds=0).fit(features, labels, groups=groups)
    assert ours.worst_case_risk_ == pytest.approx(other.worst_case_risk_, rel=1e-6)
    assert ours.client_weights_ == pytest.approx({0: 1 / 3, 1: 1 / 3, 2: 1 / 3})


def test_a_large_ball_over_the_clients_is_the_worst_client() -> None:
    features, scores, groups = rows(2, 60, 3)
    model = FederatedDRClassifier(client_radius=5.0, client_norm=math.inf, gap=1e-6, calibration_folds=0)
    model.fit(features, scores > 0.4, groups=groups)
    assert model.worst_case_risk_ == pytest.approx(max(model.site_risks_.values()), rel=1e-9)


def test_a_box_and_the_same_box_as_a_polytope_agree() -> None:
    features, scores, groups = rows(3, 45, 2)
    low, high = features.min(axis=0), features.max(axis=0)
    rows_of_c = np.vstack([np.eye(2), -np.eye(2)])
    shared: dict[str, Any] = {"radius": 0.1, "gap": 1e-5, "calibration_folds": 0}
    for loss in ("epsilon_insensitive", "pinball"):
        boxed = FederatedDRRegressor(loss=loss, support=(low, high, -20.0, 20.0), **shared)
        matrix = np.vstack([rows_of_c, np.zeros((2, 2))])
        column = np.array([0.0] * 4 + [1.0, -1.0])
        limits = np.concatenate([high, -low, [20.0, 20.0]])
        cut = FederatedDRRegressor(loss=loss, support=(matrix, column, limits), **shared)
        a, b = (each.fit(features, scores, groups=groups) for each in (boxed, cut))
        assert a.worst_case_risk_ == pytest.approx(b.worst_case_risk_, rel=2e-5)


def test_more_than_two_classes_are_one_against_the_rest() -> None:
    features, labels = load_iris(return_X_y=True)
    model = FederatedDRClassifier(loss="logistic", client_radius=0.2, gap=1e-2, calibration_folds=0).fit(
        features, labels, groups=np.arange(len(labels)) % 3
    )
    assert model.coef_.shape == (3, 4)
    assert model.score(features, labels) > 0.9
    assert sum(model.client_weights_.values()) == pytest.approx(1.0)


BAD = [
    ({"client_norm": 3}, "client_norm must be 1, 2 or inf"),
    ({"client_radius": -0.1}, "at or above 0"),
    ({"loss": "huber"}, "loss of a classifier must be one of"),
    ({"loss": "logistic", "support": (-1.0, 1.0)}, "unbounded features only"),
    ({"support": ([[1.0, 0.0]], [1.0])}, "unbounded"),
    ({"support": ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, -2.0, 1.0, 1.0])}, "no point"),
    ({"client_weights": "by size"}, "client_weights must be"),
]


@pytest.mark.parametrize(("arguments", "text"), BAD)
def test_refuses_with_one_clear_line(arguments: dict[str, Any], text: str) -> None:
    features, scores, groups = rows(4, 30, 2)
    with pytest.raises(ProblemError, match=text) as refusal:
        FederatedDRClassifier(**arguments).fit(features * 0.1, scores > 0, groups=groups)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("quantile", [0.0, 1.0, -1.0, math.nan])
def test_refuses_a_quantile_outside_0_and_1(quantile: float) -> None:
    features, scores, _ = rows(5, 20, 2)
    with pytest.raises(ProblemError, match="quantile of the pinball loss must lie between 0 and 1"):
        FederatedDRRegressor(loss="pinball", quantile=quantile).fit(features, scores, groups=np.zeros(20))


def test_without_an_intercept_a_regression_estimates_zero_at_zero() -> None:
    """Whatever the targets are about; with one they may be as far from zero as they like."""
    features = np.random.default_rng(0).random((40, 2))
    targets, groups = 50.0 + features @ [2.0, -1.0], np.arange(40) % 2
    shared = {"radius": 1e-4, "gap": 1e-2, "calibration_folds": 0}
    plain = FederatedDRRegressor(fit_intercept=False, **shared).fit(features, targets, groups=groups)
    assert plain.intercept_ == 0.0 and plain.predict(np.zeros((1, 2))).tolist() == [0.0]
    np.testing.assert_allclose(plain.predict(features), features @ plain.coef_, rtol=1e-12)
    free = FederatedDRRegressor(**shared).fit(features, targets, groups=groups)
    assert free.predict(np.zeros((1, 2)))[0] == pytest.approx(50.0, abs=0.5)


def test_a_range_of_the_target_is_in_the_targets_own_unit_however_far_from_zero() -> None:
    features = np.random.default_rng(1).random((40, 2))
    targets, groups = 50.0 + features @ [2.0, -1.0], np.arange(40) % 2
    shared = {"loss": "pinball", "radius": 1e-4, "gap": 1e-2, "calibration_folds": 0}
    model = FederatedDRRegressor(support=(0.0, 1.0, 48.0, 53.0), **shared)
    found = model.fit(features, targets, groups=groups).predict(features)
    assert ((found >= 48.0) & (found <= 53.0)).all() and np.abs(found - targets).max() < 0.5
