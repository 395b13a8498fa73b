"""What the classifiers share: fitting one-vs-rest heads over sites, and using them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from models.ambiguity import box_support, check_rows
from models.certificates import combined_certificate, robustness_radius
from models.estimators.sites import Sites, number
from models.estimators.solving import solve
from models.federation import Training
from models.multiclass import head_labels, predict_class, predict_scores
from models.problem import FloatArray, ProblemError, RobustSpec, SiteProblem, TransportNorm

Support = tuple[ArrayLike, ArrayLike] | None


class RobustClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the two classifiers share: fitting one-vs-rest heads over sites, and using them."""

    label_flip_cost: float
    transport_norm: TransportNorm
    fit_intercept: bool
    method: str
    gap: float
    max_rounds: int
    support: Any

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores: (n,) for two classes, positive for the second one; (n, K) for more."""
        scores = predict_scores(self._planes(), self._features(X))
        return scores[:, 0] if self.coef_.shape[0] == 1 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class of each row (n,)."""
        indices = predict_class(self._planes(), self._features(X))
        return np.asarray(self.classes_[indices])

    def robustness_radius(self, X: ArrayLike) -> FloatArray:
        """Smallest change of the features, in the transport norm, that changes each prediction: (n,)."""
        return robustness_radius(self._planes(), self._features(X), self.transport_norm)

    def _features(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _planes(self) -> FloatArray:
        check_is_fitted(self)
        return np.hstack([self.coef_, self.intercept_[:, None]])

    def _fit(self, X: ArrayLike, y: ArrayLike, sites: Sites) -> Self:
        features, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, indices = np.unique(labels, return_inverse=True)
        if self.classes_.shape[0] < 2:
            raise ProblemError("the data hold one class only; a classifier needs rows of at least two classes")
        rows = sites.rows(features.shape[0])
        balls = {name: self._ball(sites.radius[name], features.shape[1]) for name in rows}
        check_rows(features, np.ones(features.shape[0]), next(iter(balls.values())).support)
        weights = {str(g): sites.weights[name] for g, name in enumerate(rows)}
        runs = []
        for signs in head_labels(indices, self.classes_.shape[0]):
            problems = [SiteProblem(features[at], signs[at], balls[name]) for name, at in rows.items()]
            runs.append(self._train({str(g): problem for g, problem in enumerate(problems)}, weights))
        return self._keep(runs, list(rows), features.shape[1])

    def _ball(self, radius: float, n_features: int) -> RobustSpec:
        return RobustSpec(
            radius=number("radius", radius),
            label_flip_cost=number("label_flip_cost", self.label_flip_cost),
            transport_norm=self.transport_norm,
            support=box_support(self.support, n_features),
            fit_intercept=bool(self.fit_intercept),
        )

    def _train(self, sites: dict[str, SiteProblem], weights: dict[str, float]) -> Training:
        return solve(sites, weights, self.method, self.gap, self.max_rounds)

    def _keep(self, runs: list[Training], names: list[Hashable], n_features: int) -> Self:
        planes = np.stack([run.weights for run in runs])
        self.coef_ = planes[:, :n_features]
        self.intercept_ = planes[:, n_features] if self.fit_intercept else np.zeros(planes.shape[0])
        bounds = combined_certificate([run.certificate for run in runs])
        self.worst_case_risk_ = float(bounds.upper)
        self.certified_gap_ = float(bounds.gap)
        self.n_rounds_ = max(run.n_rounds for run in runs)
        self.site_risks_ = {name: sum(run.site_risks[str(g)] for run in runs) for g, name in enumerate(names)}
        if not self.certified_gap_ <= self.gap:
            reasons = "; ".join(sorted({run.status.value for run in runs if run.certificate.gap > self.gap}))
            warnings.warn(
                f"the fit is certified to a relative gap of {self.certified_gap_:.3g}, not {self.gap:g} ({reasons})",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self
