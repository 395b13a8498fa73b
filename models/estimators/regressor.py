r"""Distributionally robust regression over clients, certified."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from models.estimators.choices import ClientWeights, SupportArgument, client_sites
from models.estimators.drfl import DrflFit, chosen_loss, mean_weights
from models.estimators.sites import number
from models.intervals import residual_interval
from models.losses.base import Loss
from models.problem import FloatArray, SiteProblem, TransportNorm


class FederatedDRRegressor(DrflFit, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Distributionally robust regression over clients (DRFL, problem 2), certified.

        min_{w, b} max_{q in Q} sum_s q_s sup { E_P L(<w, x> + b - y) : W(P, data of client s) <= radius_s },

    with transport cost ``||x - x'|| + target_cost |y - y'|`` and Q as in
    :class:`models.estimators.FederatedDRClassifier`.

    Parameters
    ----------
    loss : {"huber", "epsilon_insensitive", "pinball"}, default "huber"
    epsilon : float or None
        Threshold of the Huber loss (default 1.35) or tolerance of the epsilon-insensitive one (default 0.1), in the
        units of the target; the pinball loss has no use for it.
    quantile : float or None
        Of the pinball loss, between 0 and 1 (default 0.5); the other losses have no use for it.
    target_cost : float, default 1.0
        Cost kappa of moving a target by 1, above 0; infinity trusts all targets.
    label_flip_cost : float or None, default None
        The same kappa by the classifier's name, for code that sets both alike; None: ``target_cost``.
    support : None, (low, high), (low, high, target_low, target_high), or (C, c, d), default None
        Box, or polytope ``C x + c y <= d``; with the epsilon-insensitive and the pinball loss only.
    radius, client_radius, client_norm, client_weights, transport_norm, fit_intercept, method, gap, max_rounds,
    random_state
        As in the classifier.

    Attributes
    ----------
    coef_ : (P,). intercept_ : float.
    worst_case_risk_, certified_gap_, n_rounds_, site_risks_, client_weights_ : as in the classifier.
    """

    def __init__(
        self,
        loss: str = "huber",
        epsilon: float | None = None,
        quantile: float | None = None,
        radius: float | Mapping[Any, float] = 0.01,
        target_cost: float = 1.0,
        label_flip_cost: float | None = None,
        client_radius: float = 0.0,
        client_norm: Any = "l2",
        client_weights: ClientWeights = None,
        transport_norm: TransportNorm = "l2",
        support: SupportArgument = None,
        fit_intercept: bool = True,
        method: str = "auto",
        gap: float = 1e-4,
        max_rounds: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.radius = radius
        self.target_cost = target_cost
        self.label_flip_cost = label_flip_cost
        self.client_radius = client_radius
        self.client_norm = client_norm
        self.client_weights = client_weights
        self.transport_norm = transport_norm
        self.support = support
        self.fit_intercept = fit_intercept
        self.method = method
        self.gap = gap
        self.max_rounds = max_rounds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit to features (N, P), targets (N,) and the client of each row (N,); without groups there is one client."""
        features, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        targets = np.asarray(targets, dtype=np.float64)
        loss = self._loss()
        sites = client_sites(groups, self.radius, self.client_weights)
        cost, rows = self._cost(), sites.rows(features.shape[0])
        problems = {
            str(g): SiteProblem(features[at], targets[at], self.spec(loss, sites.radius[name], cost, features.shape[1]))
            for g, (name, at) in enumerate(rows.items())
        }
        run = self.solve(problems, {str(g): sites.weights[name] for g, name in enumerate(rows)})
        self.coef_ = run.weights[: features.shape[1]]
        self.intercept_ = float(run.weights[-1]) if self.fit_intercept else 0.0
        self.worst_case_risk_ = float(run.certificate.upper)
        self.certified_gap_ = float(run.certificate.gap)
        self.n_rounds_ = run.n_rounds
        self.site_risks_ = {name: run.site_risks[str(g)] for g, name in enumerate(rows)}
        self.client_weights_ = mean_weights([run], list(rows))
        if not self.certified_gap_ <= self.gap:
            warnings.warn(
                f"the fit is certified to a relative gap of {self.certified_gap_:.3g}, not {self.gap:g} "
                f"({run.status.value})",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Estimate for each row (n,)."""
        check_is_fitted(self)
        features = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return np.asarray(features @ self.coef_ + self.intercept_)

    def predict_interval(self, X: ArrayLike, confidence: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Low and high ends (n,), (n,) of the interval of ``models.intervals`` around each estimate."""
        value = self.predict(X)
        below, above = residual_interval(self._loss(), self.worst_case_risk_, confidence)
        return value - above, value - below

    def _loss(self) -> Loss:
        own = {"pinball": {"quantile": self.quantile}}.get(self.loss, {"epsilon": self.epsilon})
        return chosen_loss(self.loss, "regression", **own)

    def _cost(self) -> float:
        if self.label_flip_cost is None:
            return number("target_cost", self.target_cost)
        return number("label_flip_cost", self.label_flip_cost)
