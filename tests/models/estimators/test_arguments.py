"""Arguments of the estimators that were lost, refused or overruled without a word; the default radius."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, GroupKFold

from models.estimators import DRSVC, FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC
from models.geometry.supports import BoxSupport, PolytopeSupport

RNG = np.random.default_rng(5)
X = RNG.uniform(size=(36, 2))
Y = np.where(X[:, 0] + 0.2 * RNG.normal(size=36) > 0.5, "leak", "healthy")
GROUPS = np.arange(36) % 3
FEDERATED = (FederatedDRSVC, FederatedDRClassifier, FederatedDRRegressor)
SQUARE = (np.vstack([np.eye(2), -np.eye(2)]), np.array([1.0, 1.0, 0.0, 0.0]))


@pytest.mark.parametrize("kind", FEDERATED)
def test_a_fit_without_groups_says_how_to_pass_them(kind: Any) -> None:
    outcomes = X[:, 0] if kind is FederatedDRRegressor else Y
    with pytest.warns(UserWarning, match=r"set_fit_request\(groups=True\)"):
        model = kind().fit(X, outcomes)
    assert set(model.site_risks_) == {"all"}


def test_model_selection_loses_groups_with_a_word_and_routes_them() -> None:
    grid = {"radius": [1e-3, 1e-2]}
    with pytest.warns(UserWarning, match="fit got no groups"):
        lost = GridSearchCV(FederatedDRSVC(calibration_folds=0), grid, cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    assert set(lost.best_estimator_.site_risks_) == {"all"}
    with sklearn.config_context(enable_metadata_routing=True):
        model = FederatedDRSVC(calibration_folds=0).set_fit_request(groups=True)
        routed = GridSearchCV(model, grid, cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    assert set(routed.best_estimator_.site_risks_) == {0, 1, 2}


@pytest.mark.parametrize(
    ("groups", "line"),
    [
        (["a", 1] * 18, "names of one kind that can be sorted, got int, str"),
        (np.array(["a", 1] * 18, dtype=object), "names of one kind that can be sorted, got int, str"),
        (np.zeros((36, 2)), r"must be a vector .* got the shape \(36, 2\)"),
        ([[1], [2]] * 18, r"must be a vector .* got the shape \(36, 1\)"),
        ([[1], [2, 3]] * 18, "names of one kind|ragged"),
        (["a", None] * 18, "some are missing"),
        (["a"] * 5, "name the site of each of the 36 rows, got 5"),
    ],
)
@pytest.mark.parametrize("kind", FEDERATED)
def test_refuses_groups_that_name_no_sites(kind: Any, groups: Any, line: str) -> None:
    with pytest.raises(ValueError, match=line) as refused:
        kind().fit(X, X[:, 0] if kind is FederatedDRRegressor else Y, groups=groups)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", [DRSVC, FederatedDRSVC, FederatedDRClassifier])
def test_every_classifier_takes_every_support(kind: Any) -> None:
    more = {} if kind is DRSVC else {"groups": GROUPS}
    supports = ((0.0, 1.0), BoxSupport(np.zeros(2), np.ones(2)), SQUARE, PolytopeSupport(*SQUARE))
    risks = [
        kind(radius=0.05, support=support, gap=1e-3, calibration_folds=0).fit(X, Y, **more).worst_case_risk_
        for support in supports
    ]
    assert risks == pytest.approx([risks[0]] * 4, rel=2e-3)


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"target_cost": 1.0, "label_flip_cost": 2.0}, "give one of them"),
        ({"loss": "pinball", "epsilon": 0.3}, "epsilon belongs to the losses"),
        ({"loss": "huber", "quantile": 0.3}, "quantile belongs to the loss pinball"),
        ({"loss": "pinball", "quantile": "high"}, "quantile must be a number, got 'high'"),
        ({"epsilon": "small"}, "epsilon must be a number, got 'small'"),
        ({"target_cost": 0.0}, "target_cost must be above 0"),
        ({"method_parameters": {"rho": 1.0}}, "method 'auto' has none"),
        ({"method": "fdr-admm", "method_parameters": {"rh": 1.0}}, "has no parameter 'rh'"),
        ({"method": "fdr-admm", "method_parameters": {"rho": -1.0}}, "parameter rho"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False, got 'no'"),
        ({"fit_intercept": None}, "fit_intercept must be True or False"),
        ({"tuning": {"radius": [0.1, 1.0], "seed": -1}}, "seed must be a whole number at or above 0, got -1"),
        ({"tuning": {"radius": [0.1, 1.0], "seed": 1.5}}, "seed must be a whole number"),
        ({"radius": "big"}, 'radius must be a number, got \'big\' \\("samples"'),
    ],
)
def test_refuses_what_would_be_ignored(parameters: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        FederatedDRRegressor(**parameters).fit(X, X[:, 0], groups=GROUPS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_method_gets_its_parameters() -> None:
    usual, same, other = (
        FederatedDRSVC(0.01, method="fdr-admm", method_parameters=given, max_rounds=10, calibration_folds=0)
        .fit(X, Y, groups=GROUPS)
        .coef_.tolist()
        for given in (None, {"rho": 0.1}, {"rho": 10.0})
    )
    assert usual == same != other


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_default_radius_is_the_rule_of_samples_in_scaled_units(scale: float) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    features = scale * (features - features.min(axis=0)) / np.ptp(features, axis=0)
    groups = np.arange(len(labels)) % 2
    model = FederatedDRSVC(label_flip_cost=scale, calibration_folds=0).fit(features, labels, groups=groups)
    assert model.radius_ == pytest.approx({g: scale / (10 * np.sum(groups == g)) for g in (0, 1)})
    assert model.score(features, labels) > 0.97
    cheap = FederatedDRSVC(label_flip_cost=0.1 * scale, calibration_folds=0).fit(features, labels, groups=groups)
    assert cheap.radius_ == pytest.approx({g: 0.1 * scale / (10 * np.sum(groups == g)) for g in (0, 1)})
    trusting = FederatedDRSVC({0: "samples", 1: 0.5}, math.inf, calibration_folds=0)
    trusting.fit(features, labels, groups=groups)
    assert trusting.radius_ == pytest.approx({0: scale / (10 * np.sum(groups == 0)), 1: 0.5})
