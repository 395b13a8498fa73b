"""Sample weights, class weights and probabilities of the estimators."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss

from models.estimators import DRSVC, FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC
from models.estimators.calibration import deal_folds, likely_scale
from models.estimators.table import Table, class_weights

BOX = (-6.0, 6.0)
KINDS: dict[str, FederatedDRSVC | FederatedDRClassifier | FederatedDRRegressor] = {
    "svc": FederatedDRSVC(),
    "svc on a box": FederatedDRSVC(radius=0.05, support=BOX),
    "svc by rounds": FederatedDRSVC(method="fdr-admm", max_rounds=5, calibration_folds=0),
    "logistic": FederatedDRClassifier("logistic", client_radius=0.3, client_weights="samples", max_rounds=20),
    "huber": FederatedDRRegressor(client_weights="samples"),
    "pinball on a box": FederatedDRRegressor(loss="pinball", radius=0.05, support=BOX, gap=1e-2, max_rounds=20),
}


def rows(seed: int = 0, n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, scores, groups and how often each row counts, some not at all."""
    rng = np.random.default_rng(seed)
    features, groups = rng.normal(size=(n, 3)), np.arange(n) % 3
    return features, features[:, 0] + 0.5 * rng.normal(size=n), groups, rng.integers(0, 4, size=n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_weight_of_k_is_as_k_copies_of_the_row(kind: str) -> None:
    features, scores, groups, times = rows()
    model, outcomes = KINDS[kind], scores
    if not isinstance(model, FederatedDRRegressor):
        outcomes = np.where(scores > 0, "leak", "healthy")
    weighted = type(model)(**model.get_params()).fit(features, outcomes, groups=groups, sample_weight=times)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(40), times))
    copies = {"groups": groups[order], "sample_weight": np.ones(order.shape[0])}
    copied = type(model)(**model.get_params()).fit(features[order], outcomes[order], **copies)
    np.testing.assert_array_equal(weighted.coef_, copied.coef_)
    assert weighted.worst_case_risk_ == copied.worst_case_risk_
    assert weighted.radius_ == copied.radius_ and weighted.client_weights_ == copied.client_weights_
    if hasattr(weighted, "predict_proba"):
        np.testing.assert_array_equal(weighted.predict_proba(features), copied.predict_proba(features))


def test_by_a_method_by_name_copies_without_weights_are_the_same_to_the_gap() -> None:
    """Its rounds go over the rows as they come, as a site's would; both bounds are of one optimum."""
    features, scores, groups, times = rows()
    model, each = FederatedDRSVC(method="level-bundle", gap=1e-3, calibration_folds=0), np.repeat(np.arange(40), times)
    weighted = model.fit(features, scores > 0, groups=groups, sample_weight=times)
    bounds = [weighted.objective_lower_bound_, weighted.objective_]
    copied = model.fit(features[each], scores[each] > 0, groups=groups[each])
    assert copied.objective_lower_bound_ <= bounds[1] + 1e-9 and bounds[0] <= copied.objective_ + 1e-9


@pytest.mark.parametrize("method", ["auto", "level-bundle"])
def test_by_samples_a_site_weighs_as_often_as_its_rows_count(method: str) -> None:
    """Whether they are given with weights or as copies, which are solved as one row."""
    features, scores, groups, _ = rows()
    times = np.where(groups == 0, 5, 1 + groups)
    wanted = {g: float(times[groups == g].sum() / times.sum()) for g in range(3)}
    model, each = FederatedDRSVC(weights="samples", method=method, gap=1e-2, calibration_folds=0), np.arange(40)
    for chosen, counted in ((each, times), (np.repeat(each, times), None)):
        found = model.fit(features[chosen], scores[chosen] > 0, groups=groups[chosen], sample_weight=counted)
        assert found.client_weights_ == pytest.approx(wanted)
        assert found.objective_ == pytest.approx(sum(wanted[g] * found.site_risks_[g] for g in range(3)))


def test_a_site_whose_rows_count_nothing_is_not_there() -> None:
    features, scores, groups, _ = rows()
    model = FederatedDRSVC().fit(features, scores > 0, groups=groups, sample_weight=groups > 0)
    assert set(model.site_risks_) == {1, 2}


@pytest.mark.parametrize(
    ("weights", "line"),
    [(np.full(40, -1.0), "at or above 0"), (np.zeros(40), "zero|not all 0"), (np.ones(3), "sample_weight.shape")],
)
def test_refuses_weights_that_are_none(weights: np.ndarray, line: str) -> None:
    features, scores, _, _ = rows()
    with pytest.raises(ValueError, match=line):
        DRSVC().fit(features, scores > 0, sample_weight=weights)


def test_batches_of_rows_take_no_weights() -> None:
    features, scores, groups, times = rows()
    with pytest.raises(ValueError, match="takes no row weights"):
        FederatedDRSVC(method="fedavg").fit(features, scores > 0, groups=groups, sample_weight=times)


def test_class_weights_are_weights_of_the_rows_and_move_the_plane() -> None:
    features, scores, groups, _ = rows(n=90)
    labels = np.where(scores > 1.0, "leak", "healthy")  # rare
    plain, given, balanced = (
        FederatedDRSVC(radius=0.01, class_weight=weight, calibration_folds=0).fit(features, labels, groups=groups)
        for weight in (None, {"leak": 5.0}, "balanced")
    )
    by_rows = FederatedDRSVC(radius=0.01, calibration_folds=0).fit(
        features, labels, groups=groups, sample_weight=np.where(labels == "leak", 5.0, 1.0)
    )
    np.testing.assert_array_equal(given.coef_, by_rows.coef_)
    found = [np.mean(model.predict(features)[labels == "leak"] == "leak") for model in (plain, given, balanced)]
    assert found[1] >= found[0] and found[2] > found[0]
    assert FederatedDRSVC(class_weight="balanced").fit(features, labels, groups=groups).radius_ == (
        FederatedDRSVC().fit(features, labels, groups=groups).radius_
    )
    for wrong, line in (("even", '"balanced"'), ({"leak": 0.0}, "above 0"), ({"leak": "much"}, "must be a number")):
        with pytest.raises(ValueError, match=line):
            FederatedDRSVC(class_weight=wrong).fit(features, labels, groups=groups)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_probabilities_agree_with_predictions_and_are_better_than_the_scores_as_they_are(load: Any) -> None:
    features, labels = load(return_X_y=True)
    features = (features - features.min(axis=0)) / np.ptp(features, axis=0)
    train, test = np.arange(len(labels)) % 2 == 0, np.arange(len(labels)) % 2 == 1
    groups = (np.arange(len(labels)) // 2 % 4)[train]
    model = FederatedDRSVC().fit(features[train], labels[train], groups=groups)
    found = model.predict_proba(features[test])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(features[test]))
    blind = np.bincount(labels[train])[None] / train.sum()
    assert log_loss(labels[test], found) < 0.8 * log_loss(labels[test], np.repeat(blind, test.sum(), axis=0))
    assert not hasattr(FederatedDRSVC(calibration_folds=0), "predict_proba")


def test_no_row_is_on_both_sides_of_a_fold_and_every_part_keeps_all_classes_and_sites() -> None:
    rng = np.random.default_rng(0)
    features, outcomes = rng.integers(0, 3, size=(60, 2)) * 1.0, rng.integers(0, 3, size=60) * 1.0
    site = np.arange(60) % 2
    table = Table(features, outcomes, site, np.ones(60), np.ones(60))
    folds = deal_folds(table, 3)
    whole = np.column_stack([features, outcomes, site])
    assert (folds >= 0).sum() > 30
    for fold in range(3):
        kept, held = whole[folds != fold], whole[folds == fold]
        assert not {tuple(row) for row in kept} & {tuple(row) for row in held}
        assert {tuple(row[2:]) for row in kept} == {tuple(row[2:]) for row in whole}


def test_noise_has_no_certain_class_and_separated_classes_a_finite_scale() -> None:
    rng = np.random.default_rng(0)
    scores, noise = np.column_stack([np.zeros(200), rng.normal(size=200)]), rng.integers(0, 2, size=200)
    assert likely_scale(scores, noise, np.ones(200)) < 0.5
    assert 1.0 < likely_scale(scores, (scores[:, 1] > 0).astype(np.intp), np.ones(200)) < 1e4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lone = DRSVC().fit([[0.0], [1.0]], ["a", "b"])  # nothing can be held out
    assert lone.probability_scale_ == 1.0


def test_balanced_classes_weigh_alike_however_often_their_rows_count() -> None:
    """By the sums of the rows' weights: k is as k copies."""
    classes, indices, times = np.array([0, 1, 2]), np.array([0, 0, 1, 2, 2, 2]), np.array([1, 5, 2, 1, 1, 10])
    found = class_weights("balanced", classes, indices, times.astype(float))
    copies = np.repeat(indices, times)
    np.testing.assert_allclose(found, class_weights("balanced", classes, copies, np.ones(len(copies))))
    np.testing.assert_allclose(found * np.bincount(indices, times), times.sum() / 3)


def test_the_only_row_of_a_class_at_a_site_is_in_no_fold() -> None:
    """Without it a model of the other folds would not know the class there; equal rows are one."""
    outcomes, site = np.array([0, 0, 0, 1, 0, 0, 1, 1, 1, 0]) * 1.0, np.repeat([0, 1], [4, 6])
    table = Table(np.arange(20.0).reshape(10, 2), outcomes, site, np.ones(10), np.ones(10))
    folds = deal_folds(table, 3)
    assert (folds == -1).tolist() == [False] * 3 + [True] + [False] * 6
    table.features[[7, 8]] = table.features[6]
    assert (deal_folds(table, 3) == -1).tolist() == [False] * 3 + [True] + [False] * 2 + [True] * 3 + [False]
