"""What the classifiers share: fitting one-vs-rest heads over sites, and using them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from models.basics import FloatArray, ProblemError
from models.estimators.calibration import deal_folds, likely_scale, probabilities, scores_of_classes
from models.estimators.choices import stated_support
from models.estimators.sites import Sites, number, one_site, sites_of, whole_number
from models.estimators.solving import RobustFit, Statement
from models.estimators.table import Table, class_weights, sample_counts
from models.evaluation.robustness_radius import robustness_radius
from models.losses.base import Task
from models.multiclass import head_labels, predict_class, predict_scores
from models.simulation.federation import Training
from models.validation import check_rows

_ROUGH = 1e-2
"""Gap at which a fit on a part of the rows is good enough for the scale of the probabilities."""


class RobustClassifier(RobustFit, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the classifiers share: fitting one-vs-rest heads over sites, and using them."""

    task: ClassVar[Task] = "classification"
    label_flip_cost: float
    class_weight: Mapping[Any, float] | str | None
    calibration_folds: int

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores: (n,) for two classes, positive for the second one; (n, K) for more."""
        scores = predict_scores(self._planes(), self._features(X))
        return scores[:, 0] if self.coef_.shape[0] == 1 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class of each row (n,)."""
        indices = predict_class(self._planes(), self._features(X))
        return np.asarray(self.classes_[indices])

    @available_if(lambda self: self.calibration_folds != 0)  # type: ignore[untyped-decorator]  # as above
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        r"""Probability of each class (n, C), the most probable one being the predicted one.

        ``softmax(probability_scale_ * scores)``: one scale, fitted to the scores of rows that a model of the other
        folds has not seen (``models.estimators.calibration``). The rows' own weights count, class weights do not.
        """
        scores = predict_scores(self._planes(), self._features(X))
        return probabilities(scores_of_classes(scores), self.probability_scale_)

    def robustness_radius(self, X: ArrayLike) -> FloatArray:
        """Smallest change of the features, in the transport norm, that changes each prediction: (n,).

        With a box as support the smallest inside it; with a polytope a lower bound, that without walls.
        """
        support = stated_support(self.support, self.n_features_in_, regression=False)
        return robustness_radius(self._planes(), self._features(X), self.transport_norm, support=support)

    def _features(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _planes(self) -> FloatArray:
        check_is_fitted(self)
        return np.hstack([self.coef_, self.intercept_[:, None]])

    def _sites(self, groups: ArrayLike | None, n_rows: int) -> Sites:
        return one_site(n_rows)

    def _fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None, sample_weight: ArrayLike | None) -> Self:
        features, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        sites, counts = self._sites(groups, features.shape[0]), sample_counts(sample_weight, features)
        features, labels, sites, counts = present(features, labels, sites, counts)
        self.classes_, indices = np.unique(labels, return_inverse=True)
        if self.classes_.shape[0] < 2:
            raise ProblemError("the data hold one class only; a classifier needs rows of at least two classes")
        weights = counts * class_weights(self.class_weight, self.classes_, indices, counts)[indices]
        table = Table(features, indices.astype(np.float64), sites.index, counts, weights)
        if self._merges(sample_weight is not None or self.class_weight is not None):
            table = table.merged()
        stated = self._statement(table, sites.names)
        check_rows(table.features, np.ones(table.features.shape[0]), stated.specs[0].support)
        runs, heads = self._runs(table, stated, self._wanted_gap())
        planes = np.stack([run.weights for run in runs])
        self.coef_ = planes[:, : features.shape[1]]
        self.intercept_ = planes[:, features.shape[1]] if self.fit_intercept else np.zeros(planes.shape[0])
        if self.calibration_folds != 0:
            self.probability_scale_ = self._probability_scale(table, stated)
        self._keep(runs, heads, table, stated)
        return self

    def _runs(self, table: Table, stated: Statement, gap: float) -> tuple[list[Training], FloatArray]:
        """Training of each head, and its labels (K, N)."""
        heads = head_labels(table.outcomes.astype(np.intp), self.classes_.shape[0])
        return [self._solve(table, stated, labels, gap) for labels in heads], heads

    def _probability_scale(self, table: Table, stated: Statement) -> float:
        """Scale of the probabilities, from the scores of each fold under a model of the others."""
        n_folds = whole_number("calibration_folds", self.calibration_folds, least=2)
        folds = deal_folds(table, n_folds)
        held, scores = [np.flatnonzero(folds == fold) for fold in range(n_folds)], list[FloatArray]()
        for fold, rows in enumerate(held):
            if not rows.size:
                continue
            runs, _ = self._runs(table.take(np.flatnonzero(folds != fold)), stated, max(self._wanted_gap(), _ROUGH))
            planes = np.stack([run.weights for run in runs])
            if not self.fit_intercept:
                planes = np.hstack([planes, np.zeros((planes.shape[0], 1))])
            scores.append(scores_of_classes(predict_scores(planes, table.features[rows])))
        if not scores:
            return 1.0
        tested = table.take(np.concatenate(held))
        return likely_scale(np.concatenate(scores), tested.outcomes.astype(np.intp), tested.counts)

    def _cost(self) -> float:
        return number("label_flip_cost", self.label_flip_cost)


class FederatedClassifier(RobustClassifier):
    """A classifier over several sites (clients), told apart by ``groups``."""

    def fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to features (N, P), labels (N,), the site of each row (N,) and how often it counts (N,).

        Without groups all rows are one site, and a warning says so.
        """
        return self._fit(X, y, groups, sample_weight)

    def _sites(self, groups: ArrayLike | None, n_rows: int) -> Sites:
        return sites_of(groups, n_rows)


def present(
    features: FloatArray, outcomes: NDArray[Any], sites: Sites, counts: FloatArray
) -> tuple[FloatArray, NDArray[Any], Sites, FloatArray]:
    """Rows that count at all; a site whose rows all count 0 times is as if it were not there."""
    if counts.all():
        return features, outcomes, sites, counts
    rows = np.flatnonzero(counts)
    here, index = np.unique(sites.index[rows], return_inverse=True)
    return features[rows], outcomes[rows], Sites(tuple(sites.names[g] for g in here), index), counts[rows]
