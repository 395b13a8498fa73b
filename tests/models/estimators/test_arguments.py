"""Arguments of the estimators that were lost, refused or overruled without a word; the default radius."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, GroupKFold

from models.basics import ProblemError
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
        ([np.zeros((2, 2)), np.zeros((2, 3))] * 18, "got a ragged list"),
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
        ({"target_cost": "1"}, "target_cost must be a number, got '1'"),
        ({"label_flip_cost": "1"}, "label_flip_cost must be a number, got '1'"),
        ({"label_flip_cost": 0.0}, "label_flip_cost must be above 0"),
        ({"method_parameters": {"rho": 1.0}}, "method 'auto' has none"),
        ({"method": "fdr-admm", "method_parameters": {"rh": 1.0}}, "has no parameter 'rh'"),
        ({"method": "fdr-admm", "method_parameters": {"rho": -1.0}}, "parameter rho"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False, got 'no'"),
        ({"fit_intercept": None}, "fit_intercept must be True or False"),
        ({"tuning": {"radius": [0.1, 1.0], "seed": -1}}, "seed must be a whole number at or above 0, got -1"),
        ({"tuning": {"radius": [0.1, 1.0], "seed": 1.5}}, "seed must be a whole number"),
        ({"radius": "big"}, 'radius must be a number, got \'big\' \\("samples"'),
        ({"radius": "0.1"}, "radius must be a number, got '0.1'"),
        ({"radius": np.array([0.1, 0.2, 0.3])}, r"must be a number, got array\(\[0.1, 0.2, 0.3\]\) .* a mapping"),
        ({"radius": np.array([0.1])}, "radius must be a number"),
        ({"radius": dict.fromkeys("012", 0.1)}, "given for groups '0', '1', '2', the data are of groups 0, 1, 2"),
        ({"client_weights": np.ones(3) / 3}, "client_weights must be .* a mapping of group to share, got array"),
        ({"client_weights": {0: 0.5, 1: 0.5, 2: "few"}}, "the weight of group 2 must be a number, got 'few'"),
        ({"method": np.array(["auto", "fdr-sm"])}, r"method must be one of auto, .*, got array"),
        ({"method": ["auto"]}, r"method must be one of auto, .*, got \['auto'\]"),
        ({"loss": np.array(["huber", "pinball"])}, "loss of a regressor must be one of .*, got array"),
        ({"gap": np.array([0.1, 0.2])}, r"gap must be a number, got array\(\[0.1, 0.2\]\)"),
        ({"calibration_folds": np.array([2, 3])}, "calibration_folds must be a whole number"),
        ({"fit_intercept": np.array([True, False])}, "fit_intercept must be True or False, got array"),
        ({"tuning": np.ones((9, 9))}, r'tuning must be None, "auto" or a mapping, got array\(\[\[1., 1., 1.*\.\.\.$'),
        ({"method": "fdr-sm", "method_parameters": {"step_size": "x"}}, "of method fdr-sm must be a number, got 'x'"),
        ({"method": "fdr-sm", "method_parameters": {"step_size": None}}, "of method fdr-sm must be a number, got None"),
        ({"method": "fdr-sm", "method_parameters": {"step_size": math.nan}}, "parameter step_size .* above 0, got nan"),
        ({"method": "fdr-sm", "method_parameters": {1: 1.0, "x": 2.0}}, "has no parameter 1"),
        ({"method": "fdr-sm", "method_parameters": ["x"]}, r"must be None or a mapping of name to number, got \['x'\]"),
    ],
)
def test_refuses_what_would_be_ignored(parameters: dict[str, Any], line: str) -> None:
    with pytest.raises(ProblemError, match=line) as refused:
        FederatedDRRegressor(**parameters).fit(X, X[:, 0], groups=GROUPS)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"weights": [0.9, 0.1, 0.0]}, r"^weights must be .* a mapping of group to share, got \[0.9, 0.1, 0.0\]"),
        ({"weights": "sample"}, r'^weights must be "uniform", "samples" or a mapping .*, got \'sample\''),
        ({"weights": np.ones(3)}, "^weights must be"),
        ({"class_weight": {"Leak": 5.0}}, "for a class 'Leak', the data are of classes 'healthy', 'leak'"),
        ({"class_weight": {"healthy": 1.0, "leak": 2.0, 0: 5.0}}, "class_weight is given for a class 0, the data are"),
        ({"class_weight": {"leak": "x"}}, "the class_weight of 'leak' must be a number, got 'x'"),
        ({"multi_class": np.array(["one_vs_rest"] * 2)}, "multi_class must be one of"),
        ({"transport_norm": np.array(["l1", "l2"])}, "transport_norm must be one of"),
    ],
)
def test_a_support_vector_classifier_refuses_what_would_be_ignored(parameters: dict[str, Any], line: str) -> None:
    with pytest.raises(ProblemError, match=line):
        FederatedDRSVC(**parameters).fit(X, Y, groups=GROUPS)


def test_weights_by_a_word_are_those_of_the_mapping() -> None:
    groups = np.where(np.arange(36) < 18, 2, GROUPS)
    shares = {name: float(np.mean(groups == name)) for name in (0, 1, 2)}
    uniform, alike, by_rows, stated = (
        FederatedDRSVC(weights=weights, calibration_folds=0).fit(X, Y, groups=groups).coef_.ravel().tolist()
        for weights in (None, "uniform", "samples", shares)
    )
    assert uniform == alike != by_rows and by_rows == pytest.approx(stated, rel=1e-3)
    with pytest.warns(UserWarning, match="fit got no groups"):
        assert set(FederatedDRSVC(weights="samples", calibration_folds=0).fit(X, Y).site_risks_) == {"all"}
    with pytest.raises(ProblemError, match="by group need groups"):
        FederatedDRSVC(weights=shares).fit(X, Y)


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
