"""Tuning of the estimators: terms chosen from held-out rows, what is kept of it, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.estimators import DRSVC, FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC
from models.features.spline import SplineLift


def ring(seed: int = 0) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    features = random.normal(size=(150, 3)) * 40.0
    labels = (features @ [1.0, -0.5, 0.0] + 25.0 * random.normal(size=150) > 0).astype(int)
    return features, labels, np.arange(150) % 3


def test_the_fit_is_that_of_the_chosen_terms() -> None:
    features, labels, groups = ring()
    tuning = {"radius": [1.0, 200.0], "label_flip_cost": [1.0, 30.0], "folds": 3, "rule": "best"}
    model = FederatedDRSVC(tuning=tuning, calibration_folds=0, gap=1e-5).fit(features, labels, groups=groups)
    curve: list[dict[str, Any]] = list(model.tuning_curve_)
    assert len(curve) == 4 and all(each["folds"] == 3 for each in curve), "three folds are no race"
    finalists = [each for each in curve if each["folds"] == 3]
    best = max(finalists, key=lambda each: each["score"])
    plain = FederatedDRSVC(calibration_folds=0).fit(features, labels, groups=groups)
    factor = model.radius_[0] / plain.radius_[0]
    assert model.tuning_why_.startswith("best of ")
    near = [each for each in finalists if each["radius"] == pytest.approx(factor)]
    assert max(each["score"] for each in near) == best["score"]
    same = FederatedDRSVC(
        radius=model.radius_, label_flip_cost=best["label_flip_cost"], calibration_folds=0, gap=1e-5,
    )
    risks = [
        same.set_params(label_flip_cost=each["label_flip_cost"]).fit(features, labels, groups=groups).worst_case_risk_
        for each in near
    ]
    assert min(abs(risk - model.worst_case_risk_) for risk in risks) <= 1e-4 * model.worst_case_risk_


@pytest.mark.parametrize("radii", [range(1, 3), np.array([1.0, 2.0]), {1.0: "usual", 2.0: "wide"}.keys(), 2.0])
def test_candidates_may_be_any_collection(radii: Any) -> None:
    features, labels, groups = ring()
    one = isinstance(radii, float)
    tuning = {"radius": radii, "label_flip_cost": [1.0, 2.0] if one else np.array(1.0), "folds": 3}
    model = FederatedDRSVC(tuning=tuning, gap=1e-2, calibration_folds=0).fit(features, labels, groups=groups)
    assert {each["radius"] for each in model.tuning_curve_} == ({2.0} if one else {1.0, 2.0})


def test_another_unit_of_the_same_readings_is_tuned_alike() -> None:
    """Shares of a range differ in their last digits, those of 1024 whole steps at half of the tenth one."""
    random = np.random.default_rng(5)
    steps = np.append(random.integers(0, 1024, size=70), [0, 1024])
    features = np.column_stack([steps, random.normal(size=(72, 2))])
    labels, groups = features[:, 1] + 0.4 * random.normal(size=72) > 0, np.arange(72) % 2
    found = []
    for factor, low in ((1.0, 0.0), (1.0, 32.0), (1.8, 32.0), (0.1, 0.7)):
        model = FederatedDRSVC(tuning="auto", lift="spline", lift_size=2, gap=1e-2, calibration_folds=0)
        model.fit(factor * features + low, labels, groups=groups)
        found.append([each["score"] for each in model.tuning_curve_])
    np.testing.assert_allclose(found, [found[0]] * 4, atol=1e-9)


@pytest.mark.parametrize("estimator", [DRSVC, FederatedDRSVC, FederatedDRClassifier])
def test_auto_tries_planes_splines_and_products(estimator: Any) -> None:
    features, labels, groups = ring()
    given = {} if estimator is DRSVC else {"groups": groups}
    model = estimator(tuning="auto", gap=0.03, calibration_folds=0).fit(features, labels, **given)
    lifts = [each["lift"] for each in model.tuning_curve_]
    assert {kind: lifts.count(kind) for kind in lifts} == {"none": 4, "spline": 4, "products": 4}
    assert {each["segments"] for each in model.tuning_curve_ if each["lift"] == "spline"} == {6}
    assert {each["folds"] for each in model.tuning_curve_} == {3}
    assert model.score(features, labels) > 0.7
    assert not hasattr(estimator(calibration_folds=0).fit(features, labels, **given), "tuning_curve_")


def test_what_two_sensors_tell_together_is_told_by_products_where_auto_tries_them() -> None:
    random = np.random.default_rng(4)
    features = random.uniform(size=(240, 2))
    labels, groups = (np.prod(features - 0.5, axis=1) > 0.0).astype(int), np.arange(240) % 3
    model = FederatedDRSVC(tuning="auto", gap=0.03, calibration_folds=0)
    model.fit(features[:180], labels[:180], groups=groups[:180])
    assert {each["lift"] for each in model.tuning_curve_} == {"none", "spline", "products"}
    assert model.score(features[180:], labels[180:]) > 0.9, "no curve by sensor can tell these classes"
    far = FederatedDRSVC(tuning="auto", gap=0.1, calibration_folds=0, fit_intercept=False)
    far.fit(features - 0.5, labels, groups=groups)
    assert {each["lift"] for each in far.tuning_curve_} == {"none", "spline"}, "products are of features in [0, 1]"
    sent = model.tuning_bytes_per_site_
    assert sent < 3 * max(model.bytes_per_site_, 20 * 8 * 3 * 13), "three trainings of the largest lift, with prox cuts"


def test_what_no_plane_can_tell_is_told_by_the_chosen_splines() -> None:
    random = np.random.default_rng(3)
    features = random.uniform(-40.0, 40.0, size=(240, 2))
    labels, groups = (np.abs(np.abs(features[:, 0]) - 20.0) > 10.0).astype(int), np.arange(240) % 3
    model = FederatedDRSVC(tuning="auto", gap=0.03, calibration_folds=0)
    model.fit(features[:180], labels[:180], groups=groups[:180])
    assert isinstance(model.lift_, SplineLift) and model.lift_.segments == 6
    assert model.score(features[180:], labels[180:]) > 0.85 and model.coef_.shape[1] == 2 * model.lift_.segments
    chosen = FederatedDRSVC(tuning={"segments": [0, 4], "radius": [1.0], "folds": 3}, gap=0.1, calibration_folds=0)
    chosen.fit(features, labels, groups=groups)
    assert {each["segments"] for each in chosen.tuning_curve_} == {0, 4}
    with pytest.raises(ProblemError, match="segments are tuned with lift None"):
        FederatedDRSVC(tuning={"segments": [0, 4]}, support=(-50.0, 50.0)).fit(features, labels, groups=groups)


def test_one_number_of_segments_is_a_grid_with_radii() -> None:
    features, labels, groups = ring()
    model = FederatedDRSVC(tuning={"segments": 3, "folds": 3}, gap=1e-2, calibration_folds=0)
    model.fit(features, labels, groups=groups)
    assert {each["segments"] for each in model.tuning_curve_} == {3} and len(model.tuning_curve_) == 4


@pytest.mark.parametrize("loss", ["huber", "pinball"])
def test_a_score_is_the_error_in_the_unit_of_the_target(loss: str) -> None:
    features, _, groups = ring()
    targets = 1000.0 + features @ [0.3, 0.0, 1.0] + np.random.default_rng(1).normal(size=150)
    model = FederatedDRRegressor(loss=loss, tuning={"radius": [1.0, 2.0], "folds": 3}, gap=1e-2, calibration_folds=0)
    model.fit(features, targets, groups=groups)
    errors = np.abs(model.predict(features) - targets)
    share = 0.5 if loss == "pinball" else 1.0  # of the median, half of the absolute error
    assert -max(each["score"] for each in model.tuning_curve_) == pytest.approx(share * errors.mean(), rel=0.3)


def test_a_regression_is_judged_by_its_error() -> None:
    features, _, groups = ring()
    targets = features @ [0.3, 0.0, 1.0] + np.random.default_rng(1).normal(size=150)
    model = FederatedDRRegressor(tuning={"radius": [1.0, 1e6], "folds": 3}, calibration_folds=0)
    model.fit(features, targets, groups=groups)
    curve: list[dict[str, Any]] = list(model.tuning_curve_)
    scores = {each["radius"]: each["score"] for each in curve}
    assert scores[1.0] > scores[1e6] and model.radius_[0] < 1e3 and max(scores.values()) < 0


@pytest.mark.parametrize(
    ("tuning", "line"),
    [
        ("often", 'None, "auto" or a mapping'), ({"radius": [1.0], "label_flip_cost": [1.0]}, "got 1"),
        ({"radius": [1.0, 3.0], "budget": 0.5}, "from 1 to 3 trainings"),
        ({"radius": [1.0, 3.0], "folds": 1}, "two folds at least"),
        ({"radius": [1.0, 3.0], "folds": 80}, "too few|distinct rows"),
        ({"radius": [1.0, 3.0], "rule": "luck"}, "rule must be one of"),
        ({"radius": ["1.0", "3.0"]}, "radius must be a number, got '1.0'"),
        ({}, r'says what is tried, some of radius, .*, got \{\}; "auto" chooses by itself'),
        ({"folds": 3, "budget": 3.0}, "says what is tried"),
        ({"lifts": 3}, "tuning knows radius"),
    ],
)
def test_a_tuning_without_meaning_is_refused(tuning: Any, line: str) -> None:
    features, labels, groups = ring()
    with pytest.raises(ProblemError, match=line):
        FederatedDRSVC(tuning=tuning).fit(features, labels, groups=groups)


def test_a_class_of_one_row_at_a_site_keeps_nobody_from_tuning() -> None:
    features, labels, groups = ring()
    labels = np.where(np.arange(150) < 3, 2, labels)
    assert [int(np.sum(labels[groups == each] == 2)) for each in range(3)] == [1, 1, 1]
    plane: dict[str, Any] = {"tuning": "auto", "lift": "spline", "lift_size": 1, "gap": 1e-1, "calibration_folds": 0}
    model = FederatedDRClassifier(loss="hinge", **plane)
    model.fit(features, labels, groups=groups)
    assert model.tuning_why_.startswith("best of 4 with ") and list(model.classes_) == [0, 1, 2]


def test_where_rows_are_too_few_for_folds_auto_takes_the_terms_as_they_are() -> None:
    """As a plan does: 24 rows at twelve sites."""
    features, labels, groups = ring()
    features, labels, groups = features[:24], labels[:24], np.arange(24) % 12
    model = FederatedDRClassifier(tuning="auto", loss="hinge", gap=1e-2, calibration_folds=0)
    model.fit(features, labels, groups=groups)
    assert model.tuning_why_ == "the estimator's own terms, untuned: a site or more has too few rows for 3 folds"
    assert {(each["score"], each["folds"]) for each in model.tuning_curve_} == {(None, 0)}
    assert model.lift_ is None and model.tuning_rounds_ == model.tuning_bytes_per_site_ == 0
    assert model.radius_[0] == pytest.approx(1.0 / (10 * np.sum(groups == 0)))
    names = np.array([f"plant-{g}" for g in range(12)])[groups]
    with pytest.raises(ProblemError, match="group plant-0 cannot be tuned: .* distinct rows.* .fewer folds"):
        FederatedDRClassifier(tuning={"radius": [1.0, 3.0], "folds": 3}).fit(features, labels, groups=names)


def faults_in_a_corner(share: float) -> tuple[Any, Any, Any]:
    """Rows of which so many are faulty, a third of them among healthy ones."""
    random = np.random.default_rng(6)
    n, n_faults = 150, round(150 * share)
    features = random.normal(size=(n, 3))
    features[:n_faults, 0] += 1.6
    return features, (np.arange(n) < n_faults).astype(int), random.permutation(n) % 2


@pytest.mark.parametrize(("share", "radii"), [(0.06, [0.1, 0.3, 1.0]), (0.1, [0.3, 1.0, 3.0, 10.0])])
def test_auto_learns_rare_faults_by_the_logistic_loss_as_a_plan_does(share: float, radii: list[float]) -> None:
    features, labels, groups = faults_in_a_corner(share)
    plane: dict[str, Any] = {"tuning": "auto", "lift": "spline", "lift_size": 1, "gap": 1e-3, "calibration_folds": 0}
    model = FederatedDRClassifier(**plane).fit(features, labels, groups=groups)
    assert sorted({each["radius"] for each in model.tuning_curve_}) == radii
    hinge = FederatedDRClassifier(loss="hinge", **plane).fit(features, labels, groups=groups)
    assert (model.worst_case_risk_ == hinge.worst_case_risk_) is (share == 0.1)
    weighed = FederatedDRClassifier(class_weight="balanced", **plane).fit(features, labels, groups=groups)
    assert sorted({each["radius"] for each in weighed.tuning_curve_}) == [0.3, 1.0, 3.0, 10.0], "classes weigh alike"


def test_auto_learns_enough_rare_faults_with_products_beside_splines_as_a_plan_does() -> None:
    """27 faulty rows for the 3 * 6 ramps and 3 products of three features."""
    random = np.random.default_rng(3)
    features, labels = random.uniform(size=(450, 3)), (np.arange(450) < 27).astype(int)
    features[:27, :2] = random.choice([0.1, 0.9], size=27)[:, None] + 0.1 * random.uniform(size=(27, 2))
    groups = np.arange(450) % 3
    model = FederatedDRClassifier(tuning="auto", calibration_folds=0, gap=0.1).fit(features, labels, groups=groups)
    assert [(each["lift"], each["segments"]) for each in model.tuning_curve_] == [("products", 6)] * 3
    assert model.lift_.n_outputs == 21 == model.coef_.shape[1]
    for stated in ({"loss": "logistic"}, {"lift": "spline"}):
        free = FederatedDRClassifier(tuning="auto", calibration_folds=0, gap=0.1, **stated)
        lifts = {each["lift"] for each in free.fit(features, labels, groups=groups).tuning_curve_}
        assert lifts == ({"none", "spline", "products"} if "loss" in stated else {"spline"})
    model.fit(features, labels, groups=np.where(np.arange(450) < 2, 2, groups % 2))  # a site of two rows
    assert "too few rows for 3 folds" in model.tuning_why_ and model.lift_ is None


def test_a_radius_of_zero_has_nothing_to_tune() -> None:
    features, labels, groups = ring()
    with pytest.raises(ProblemError, match="give a radius above 0"):
        FederatedDRSVC(radius=0.0, tuning="auto").fit(features, labels, groups=groups)
