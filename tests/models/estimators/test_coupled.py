"""Several classes by "auto": the logistic loss where none is stated, and planes that are coupled after training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from models.estimators import DRSVC, FederatedDRClassifier, coupled
from models.losses.catalogue import get_loss
from models.losses.joint import Softmax
from models.problem import RobustSpec, SiteProblem
from models.tuning.coupling import EXCHANGES, RIDGE
from models.worst_case.risk import site_risk

SHARES = {"a": 0.6, "b": 0.4}
STATED: dict[str, Any] = {"tuning": "auto", "lift": "spline", "lift_size": 1, "calibration_folds": 0, "gap": 1e-2}
"""Planes, and four radii to choose from: no lift is tried beside one that is given."""


def between(seed: int = 0, count: int = 150) -> tuple[Any, Any, Any]:
    """Rows (N, 2), classes and sites: one class lies between two others, and the sites are of unlike sizes."""
    random = np.random.default_rng(seed)
    place = random.uniform(-1.0, 1.0, count)
    labels = np.select([place < -0.3, place < 0.3], ["few", "even"], "many")
    features = np.column_stack([place + 0.1 * random.normal(size=count), random.uniform(-1.0, 1.0, count)])
    return features, labels, np.where(np.arange(count) % 3, "a", "b")


def fitted(**terms: Any) -> FederatedDRClassifier:
    features, labels, groups = between()
    shared: dict[str, Any] = {**STATED, "client_weights": SHARES}
    return FederatedDRClassifier(**{**shared, **terms}).fit(features, labels, groups=groups)


@pytest.fixture(scope="module")
def model() -> FederatedDRClassifier:
    return fitted(calibration_folds=3)


def lifted(model: Any, features: Any) -> Any:
    return features if model.lift_ is None else model.lift_.apply(features)


def test_bounds_are_of_the_trained_planes_and_risks_of_the_coupled_ones(model: Any) -> None:
    features, labels, groups = between()
    # The balls are of features in shares of their ranges, as are the ramps of the one segment that each has.
    seen = lifted(model, features) / model.feature_scale_

    def risk(own: Any) -> float:
        planes = own * np.append(model.feature_scale_, 1.0)
        total = 0.0
        for place, name in enumerate(model.classes_):
            for site, share in SHARES.items():
                rows = groups == site
                spec = RobustSpec(model.radius_[site], 1.0, loss=get_loss("logistic"))
                signs = np.where(labels[rows] == name, 1.0, -1.0)
                total += share * site_risk(planes[place], SiteProblem(seen[rows], signs, spec)).value
        return total

    coupled = np.column_stack([model.coef_, model.intercept_])
    assert model.worst_case_risk_ == pytest.approx(risk(coupled), rel=1e-6), "by the logistic loss"
    assert model.objective_ == pytest.approx(risk(model.coupling_.trained), rel=1e-6)
    assert model.objective_lower_bound_ <= model.objective_ <= model.worst_case_risk_ + 1e-9
    by_site = sum(SHARES[site] * value for site, value in model.site_risks_.items())
    assert by_site == pytest.approx(model.worst_case_risk_)


def test_scores_are_the_coupled_ones_of_the_trained_planes(model: Any) -> None:
    rows = between(1)[0]
    trained = lifted(model, rows) @ model.coupling_.trained[:, :-1].T + model.coupling_.trained[:, -1]
    wanted = trained @ model.coupling_.coupling[:, :-1].T + model.coupling_.coupling[:, -1]
    np.testing.assert_allclose(model.decision_function(rows), wanted, atol=1e-9)
    assert (model.predict(rows) == model.classes_[wanted.argmax(axis=1)]).all()


def coupling_problem(planes: Any, model: Any) -> tuple[Any, Any]:
    """The coupling's objective at (A, b) and without a coupling, from the rows themselves."""
    features, labels, groups = between()
    k, classes = len(model.classes_), np.searchsorted(model.classes_, labels)
    scores = lifted(model, features) @ planes[:, :-1].T + planes[:, -1]
    weights = np.select([groups == site for site in SHARES], [
        share / (groups == site).sum() for site, share in SHARES.items()
    ])

    def objective(flat: Any) -> float:
        found = flat.reshape(k, k + 1)
        new = scores @ found[:, :-1].T + found[:, -1]
        losses = logsumexp(new, axis=1) - new[np.arange(len(new)), classes]
        return float(weights @ losses + RIDGE / 2 * ((found - np.eye(k, k + 1)) ** 2).sum())

    return objective, np.eye(k, k + 1).ravel()


def test_the_coupling_is_near_the_optimum_of_all_sites_in_their_weights(model: Any) -> None:
    said, k = model.coupling_, len(model.classes_)
    objective, start = coupling_problem(said.trained, model)
    best = float(minimize(objective, start, method="BFGS").fun)
    assert said.objective == pytest.approx(objective(said.coupling.ravel()))
    assert said.before == pytest.approx(objective(start))
    assert said.at_least <= best + 1e-9 and said.objective <= 1.03 * best < 0.95 * said.before
    assert said.rounds <= EXCHANGES and said.rounds + model.tuning_rounds_ <= 3 * 20, "three trainings pay for both"
    sent = (1 + 3 * (said.rounds - 1)) * 8 * (3 + (k - 1) * (k + 1))
    assert said.bytes_per_site == sent


def gain(planes: Any, model: Any) -> float:
    """What a coupling of planes would still gain, as a share."""
    objective, start = coupling_problem(planes, model)
    return 1.0 - float(minimize(objective, start, method="BFGS").fun) / objective(start)


def test_sets_are_of_models_that_were_made_alike(model: Any) -> None:
    """Else the scores of held-out rows say nothing of those of new ones."""
    folds = [gain(planes, model) for planes in model._held_out.planes]
    assert len(folds) == 3 and np.mean(folds) < 0.6 * gain(model.coupling_.trained, model)
    rows, truth, _ = between(2, 400)
    inside = model.predict_set(rows, 0.8)
    assert inside[np.arange(400), np.searchsorted(model.classes_, model.predict(rows))].all()
    assert inside[np.arange(400), np.searchsorted(model.classes_, truth)].mean() > 0.74


def test_no_move_within_the_radius_changes_a_prediction(model: Any) -> None:
    rows, random = between(3, 60)[0], np.random.default_rng(0)
    radius, said = model.robustness_radius(rows), model.predict(rows)
    for _ in range(60):
        way = random.normal(size=rows.shape)
        way *= (0.999 * radius / np.linalg.norm(way, axis=1))[:, None]
        assert (model.predict(rows + way) == said).all()
    assert (radius > 0).any()


def test_where_large_balls_shrink_planes_coupled_ones_tell_new_rows_better() -> None:
    rows, truth, _ = between(4, 400)
    model = fitted(radius=0.1)
    seen, classes = lifted(model, rows), np.searchsorted(model.classes_, truth)

    def told(planes: Any) -> tuple[float, float]:
        """Mean log loss, and share of the right classes."""
        scores = seen @ planes[:, :-1].T + planes[:, -1]
        losses = logsumexp(scores, axis=1) - scores[np.arange(len(rows)), classes]
        return float(losses.mean()), float((scores.argmax(axis=1) == classes).mean())

    before, now = told(model.coupling_.trained), told(model.coupling_.planes)
    assert now[0] < 0.85 * before[0] and now[1] > before[1] + 0.02


@pytest.mark.parametrize("terms", [
    {"loss": "hinge"}, {"loss": "smooth_hinge"}, {"tuning": {"radius": [1.0, 3.0], "folds": 3}}, {"tuning": None},
    {"client_radius": 0.2}, {"fit_intercept": False}, {"support": (-2.0, 2.0), "lift": None},
], ids=lambda terms: next(iter(terms)) + "=" + str(next(iter(terms.values()))))
def test_what_a_plan_does_not_couple_is_not_coupled_here(terms: dict[str, Any]) -> None:
    features, labels, groups = between(count=60)
    given: dict[str, Any] = {**STATED, "gap": 0.3, **terms}
    assert FederatedDRClassifier(**given).fit(features, labels, groups=groups).coupling_ is None


def test_as_few_rows_and_as_rough_a_gap_are_coupled_where_a_plan_does() -> None:
    features, labels, groups = between(count=60)
    assert FederatedDRClassifier(**{**STATED, "gap": 0.3}).fit(features, labels, groups=groups).coupling_ is not None


def test_a_stated_logistic_loss_is_coupled_and_two_classes_are_not() -> None:
    features, labels, groups = between()
    again = fitted(loss="logistic")
    assert again.coupling_ is not None
    again.fit(features[:60], labels[:60] == "even", groups=groups[:60])
    assert again.coupling_ is None, "nothing of an earlier fit stays"
    assert DRSVC(**STATED).fit(features[:60], labels[:60]).coupling_ is None, "its loss is the hinge"


def test_a_weight_of_two_couples_as_two_copies() -> None:
    features, labels, groups = between(count=90)
    counts = np.where(np.arange(90) % 4, 1.0, 2.0)
    twice = np.repeat(np.arange(90), counts.astype(int))
    weighted = FederatedDRClassifier(**STATED).fit(features, labels, groups=groups, sample_weight=counts)
    copies = FederatedDRClassifier(**STATED).fit(features[twice], labels[twice], groups=groups[twice])
    np.testing.assert_allclose(weighted.coupling_.coupling, copies.coupling_.coupling, atol=1e-6)


def test_what_all_sites_tell_of_a_coupling_is_its_mean_loss_in_their_weights_and_the_slope_of_that() -> None:
    draw, shares, loss = np.random.default_rng(4), np.array([0.9, 0.1]), Softmax(3)
    problems = [
        SiteProblem(draw.normal(size=(n, 3)) + g, draw.integers(3, size=n) * 1.0, RobustSpec(0.0, 1.0, loss=loss))
        for g, n in enumerate((20, 12))
    ]
    point = draw.normal(size=8)

    def mean_loss(at: Any) -> float:
        return float(shares @ [site_risk(at, problem).value for problem in problems])

    told = coupled._told(point[None], problems, shares)
    assert told.loss == pytest.approx(mean_loss(point)) and told.height <= told.loss
    steps = 1e-6 * np.eye(8)
    rises = [(mean_loss(point + step) - mean_loss(point - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(told.slope, rises, atol=1e-7)
