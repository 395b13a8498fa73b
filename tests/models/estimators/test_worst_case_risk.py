"""Whatever a method minimised, ``worst_case_risk_`` is the risk over the balls as stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from models.estimators import FederatedDRClassifier, FederatedDRRegressor
from models.evaluation.intervals import residual_interval
from models.losses.catalogue import get_loss
from models.methods.catalogue import METHODS
from models.methods.protocol import WORST_CASE
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from models.worst_case import worst_case_risk

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RADIUS, COST = 0.05, 1.0


def true_risk(
    model: Any, features: np.ndarray, labels: np.ndarray, groups: np.ndarray, loss: Any, theta: float
) -> float:
    """Risk of the worst mixture of the groups, from the definition of the problem."""
    risks = [
        worst_case_risk(
            np.ravel(model.coef_), features[groups == g], labels[groups == g], radius=RADIUS, label_flip_cost=COST,
            transport_norm="l2", intercept=float(np.ravel(model.intercept_)[0]), loss=loss,
        ).value
        for g in range(3)
    ]
    return worst_mixture(np.array(risks), np.full(3, 1 / 3), MixtureBall("l2", theta)).value


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_is_judged_by_the_risk_over_the_balls(method: str) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    features, groups = ((features - features.min(axis=0)) / np.ptp(features, axis=0))[:90], np.arange(90) % 3
    chosen, signs = METHODS[method], np.where(labels[:90] > 0, 1.0, -1.0)
    loss, theta = "logistic" if chosen.needs_smooth_loss else "hinge", 0.3 * chosen.supports_mixture
    model = FederatedDRClassifier(
        loss=loss, radius=RADIUS, method=method, max_rounds=4, client_radius=theta, calibration_folds=0
    ).fit(features, labels[:90], groups=groups)
    true = true_risk(model, features, signs, groups, loss, theta)
    assert model.worst_case_risk_ == pytest.approx(true, rel=1e-9)
    mixed = sum(model.client_weights_[g] * model.site_risks_[g] for g in range(3))
    assert mixed == pytest.approx(true, rel=1e-9)
    assert model.objective_name_ == chosen.objective
    assert model.objective_lower_bound_ <= model.objective_
    if chosen.is_robust:
        assert model.objective_ == pytest.approx(true, rel=1e-9) and model.objective_name_ == WORST_CASE
    if chosen.ignores_radius and method not in ("scaff-pd", "scaff-pd-ia", "feddro"):
        assert model.objective_ < true


@pytest.mark.parametrize("method", ["auto", "standard", "fedavg", "drfa-exact"])
def test_an_interval_follows_from_the_risk_over_the_balls(method: str) -> None:
    features, targets = load_diabetes(return_X_y=True)
    features, targets, groups = features[:120], (targets / 100)[:120], np.arange(120) % 3
    model = FederatedDRRegressor(radius=RADIUS, method=method, max_rounds=5, calibration_folds=0)
    model.fit(features, targets, groups=groups)
    risk = true_risk(model, features, targets, groups, "huber", 0.0)
    assert model.worst_case_risk_ == pytest.approx(risk, rel=1e-9)
    low, high = model.predict_interval(features, 0.8, method="markov").T
    below, above = residual_interval(get_loss("huber"), risk, 0.8)
    np.testing.assert_allclose(high - low, above - below)


@pytest.mark.parametrize("quantile", [0.2, 0.9])
def test_an_interval_lies_where_the_loss_of_its_ends_is_what_the_confidence_leaves(quantile: float) -> None:
    """Lopsided as the loss is: of a high quantile most targets lie below the estimate."""
    features, targets = load_diabetes(return_X_y=True)
    model = FederatedDRRegressor("pinball", quantile=quantile, radius=RADIUS, max_rounds=5, calibration_folds=0)
    model.fit(features[:90], (targets / 100)[:90], groups=np.arange(90) % 3)
    estimates, ends = model.predict(features[:5]), model.predict_interval(features[:5], 0.8, method="markov")
    heights = get_loss("pinball", quantile=quantile).value(estimates[:, None] - ends)
    np.testing.assert_allclose(heights, model.worst_case_risk_ / 0.2)
    assert (ends[:, 0] < estimates).all() and (estimates < ends[:, 1]).all()
