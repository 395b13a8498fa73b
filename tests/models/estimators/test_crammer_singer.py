"""All classes as one problem: the optimum of a convex program, one mixture for all, and the estimator around it."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from models.basics import ProblemError
from models.estimators import DRSVC, FederatedDRSVC
from models.problem import RobustSpec, SiteProblem
from models.simulation.crammer_singer import train_crammer_singer
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from models.worst_case.crammer_singer import crammer_singer_cut

CENTRES = np.array([[0.0, 0.0], [1.0, 0.1], [2.0, 0.2]])


def rows(seed: int, count: int, radius: float = 0.02) -> SiteProblem:
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    features = CENTRES[labels] + 0.05 * seed + 0.15 * random.normal(size=(count, 2))
    return SiteProblem(features, labels.astype(float), RobustSpec(radius, 0.5))


SITES = {"a": rows(0, 21), "b": rows(1, 15, 0.05), "c": rows(2, 18)}
SHARES = {"a": 0.5, "b": 0.2, "c": 0.3}
JOINT: dict[str, Any] = {"gap": 1e-3, "multi_class": "crammer_singer"}


def stated(site: SiteProblem, planes: cp.Variable, last: cp.Variable, bound: Any) -> list[cp.Constraint]:
    """``bound`` is above the site's risk: every piece of every label written out."""
    scores = site.features @ planes.T + np.ones((len(site.labels), 1)) @ cp.reshape(last, (1, 3), order="C")
    price, worst = cp.Variable(nonneg=True), cp.Variable(len(site.labels), nonneg=True)
    terms = [cp.norm(planes[k] - planes[j]) <= price for k in range(3) for j in range(k)]
    for label in range(3):
        paid = site.spec.label_flip_cost * price * (site.labels != label)
        terms += [worst >= float(k != label) + scores[:, k] - scores[:, label] - paid for k in range(3)]
    return [*terms, bound >= site.spec.radius * price + cp.sum(worst) / len(site.labels)]


@pytest.mark.parametrize("theta", [0.0, 0.3])
def test_the_bounds_hold_the_optimum_of_the_worst_mixture_between_them(theta: float) -> None:
    found = train_crammer_singer(SITES, 3, weights=SHARES, mixture=MixtureBall("l2", theta), gap=1e-3)
    centre = np.array(list(SHARES.values()))
    planes, last, tops = cp.Variable((3, 2)), cp.Variable(3), cp.Variable(3)
    held = [each for g, site in enumerate(SITES.values()) for each in stated(site, planes, last, tops[g])]
    # max { <q, t> : q in the simplex, ||q - a|| <= theta } by its dual
    slack, level = cp.Variable(3, nonneg=True), cp.Variable()
    value = centre @ (tops + slack) + theta * cp.norm(tops + slack - level)
    best = cp.Problem(cp.Minimize(value), held).solve(solver="CLARABEL")
    assert found.certificate.gap <= 1e-3
    assert found.certificate.lower <= best + 1e-6 and found.certificate.upper >= best - 1e-6
    flat = np.concatenate([found.planes[:, :-1].ravel(), found.planes[:, -1]])
    exact = np.array([crammer_singer_cut(flat, site, 3).risk for site in SITES.values()])
    worst = worst_mixture(exact, centre, MixtureBall("l2", theta))
    assert found.certificate.upper == pytest.approx(worst.value)
    assert list(found.mixture_weights.values()) == pytest.approx(worst.weights.tolist())


def test_the_estimator_has_one_certificate_and_one_mixture_for_all_classes() -> None:
    features = np.vstack([site.features for site in SITES.values()])
    labels = np.concatenate([site.labels for site in SITES.values()])
    groups = np.repeat(list(SITES), [len(site.labels) for site in SITES.values()])
    names = np.array(["none", "small", "large"])[labels.astype(int)]
    joint = FederatedDRSVC(radius=1e-3, calibration_folds=2, **JOINT).fit(features, names, groups=groups)
    assert joint.score(features, names) > 0.9
    assert joint.coef_.shape == (3, 2) and joint.certified_gap_ <= 1e-3
    assert joint.worst_case_risk_ == pytest.approx(joint.objective_)
    assert sum(joint.client_weights_.values()) == pytest.approx(1.0)
    assert joint.predict_proba(features).sum(axis=1) == pytest.approx(np.ones(len(features)))
    radii = joint.robustness_radius(features)
    random = np.random.default_rng(0).normal(size=features.shape)
    moves = 0.99 * radii[:, None] * random / np.linalg.norm(random, axis=1)[:, None]
    assert (joint.predict(features + moves) == joint.predict(features)).all()


def test_rows_count_as_often_as_they_say() -> None:
    site = SITES["a"]
    often = np.where(site.labels == 1, 2, 1)
    copies = np.repeat(np.arange(len(often)), often)
    weighted = DRSVC(radius=0.02, calibration_folds=0, **JOINT).fit(site.features, site.labels, sample_weight=often)
    repeated = DRSVC(radius=0.02, calibration_folds=0, **JOINT).fit(site.features[copies], site.labels[copies])
    assert weighted.worst_case_risk_ == pytest.approx(repeated.worst_case_risk_, rel=2e-3)


def test_without_an_intercept_there_is_none() -> None:
    site = SITES["a"]
    model = DRSVC(radius=0.02, fit_intercept=False, calibration_folds=0, **JOINT).fit(site.features, site.labels)
    assert model.coef_.shape == (3, 2) and not model.intercept_.any() and model.certified_gap_ <= 1e-3


def test_two_classes_are_one_plane_either_way() -> None:
    site = SITES["a"]
    two = site.labels < 2
    joint = DRSVC(radius=0.02, calibration_folds=0, **JOINT).fit(site.features[two], site.labels[two])
    plain = DRSVC(radius=0.02, calibration_folds=0, gap=1e-3).fit(site.features[two], site.labels[two])
    np.testing.assert_array_equal(joint.coef_, plain.coef_)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"multi_class": "ovo"}, "multi_class must be one of"), ({"support": (-9.0, 9.0)}, "without bounds"),
        ({"method": "level-bundle"}, "method 'auto'"), ({"tuning": "auto"}, "terms as stated"),
    ],
)
def test_what_does_not_go_together_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ProblemError, match=said):
        DRSVC(**({"radius": 0.02} | JOINT | change)).fit(SITES["a"].features, SITES["a"].labels)


def test_all_classes_as_one_problem_are_trained_in_the_weights_of_the_groups() -> None:
    features = np.vstack([site.features for site in SITES.values()])
    labels = np.concatenate([site.labels for site in SITES.values()])
    groups = np.repeat(list(SITES), [len(site.labels) for site in SITES.values()])
    model = FederatedDRSVC(radius=0.02, weights={"a": 0.9, "b": 0.06, "c": 0.04}, calibration_folds=0, **JOINT)
    model.fit(features, labels, groups=groups)
    risks = model.site_risks_
    assert model.objective_ == pytest.approx(0.9 * risks["a"] + 0.06 * risks["b"] + 0.04 * risks["c"], rel=1e-9)
    assert model.objective_ == pytest.approx(model.worst_case_risk_, rel=1e-9)
