"""What the classifiers share: fitting one-vs-rest heads over sites, and using them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from models.basics import FloatArray, ProblemError
from models.conformal.cross import OutOfFold, cross_sets
from models.conformal.scores import class_scores as scores_of_both
from models.conformal.scores import own_margins
from models.estimators.calibration import deal_folds, likely_scale, probabilities, scores_of_classes
from models.estimators.choices import chosen_loss, mixture_ball, stated_support
from models.estimators.columns import check_features
from models.estimators.coupled import coupled
from models.estimators.folds import ROUGH, calibration_folds, fold_models
from models.estimators.joint import is_joint, joint_planes, joint_risks, joint_training
from models.estimators.lifting import fitted_lift
from models.estimators.sites import Rows, Sites, check_labels, machines_of, one_site, sites_of
from models.estimators.solving import AUTO, RobustFit, Statement
from models.estimators.table import Table, class_weights, sample_counts
from models.estimators.values import number, whole_number
from models.evaluation.robustness_radius import robustness_radius
from models.losses.base import Loss, Task
from models.methods.catalogue import METHODS
from models.multiclass import head_labels, predict_class, predict_scores
from models.simulation.federation import Training
from models.tuning.automatic import AUTO_LOSS, is_rare
from models.validation import check_rows


class RobustClassifier(RobustFit, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the classifiers share: fitting one-vs-rest heads over sites, and using them."""

    task: ClassVar[Task] = "classification"
    label_flip_cost: float
    class_weight: Mapping[Any, float] | str | None
    calibration_folds: int
    multi_class: str = "one_vs_rest"

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores: (n,) for two classes, positive for the second one; (n, K) for more."""
        scores = predict_scores(self._planes(), self._lifted(self._features(X)))
        return scores[:, 0] if self.coef_.shape[0] == 1 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class of each row (n,)."""
        indices = predict_class(self._planes(), self._lifted(self._features(X)))
        return np.asarray(self.classes_[indices])

    @property
    def predict_proba(self) -> Callable[[ArrayLike], FloatArray]:
        r"""Probability of each class (n, C), the most probable one being the predicted one.

        ``softmax(probability_scale_ * scores)``: one scale, fitted to the scores of rows that a model of the other
        folds has not seen (``models.estimators.calibration``). The rows' own weights count, class weights do not.
        Without ``calibration_folds`` there is no such method (``AttributeError``), as scikit-learn asks.
        """
        if self.calibration_folds == 0:
            raise AttributeError("predict_proba needs calibration_folds, and there are 0: set 2 or more, and fit anew")
        return self._probabilities

    def _probabilities(self, X: ArrayLike) -> FloatArray:
        features = self._features(X)
        self._folds()
        scores = predict_scores(self._planes(), self._lifted(features))
        return probabilities(scores_of_classes(scores), self.probability_scale_)

    def predict_set(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Set of classes of each row at a coverage in (0, 1): truth values (n, C), a column for each of ``classes_``.

        A set holds the true class of a share ``coverage`` of all new rows of every group, on the average over the draw
        of the data: cross-conformal, from the scores of the ``calibration_folds`` (``models.conformal.cross`` says what
        is proven). The predicted class is always in it. ``ProblemError`` for a coverage that is not between 0 and 1, or
        where a group has too few rows for it, or of a fit without folds.
        """
        features, coverage = self._lifted(self._features(X)), number("coverage", coverage)
        held = self._folds()
        held.check_level(coverage)  # where no row was held out there is no model to be asked
        heads = held.head_scores(features)
        found = cross_sets(held, np.stack([scores_of_both(each) for each in heads]), coverage)
        found[np.arange(features.shape[0]), predict_class(self._planes(), features)] = True
        return found

    def robustness_radius(self, X: ArrayLike) -> FloatArray:
        """Smallest change of the features, in the transport norm, that changes each prediction: (n,).

        With a box as support the smallest inside it; with a polytope a lower bound, that without walls. With splines
        that of moves between the least and largest value of each feature, beyond which no score changes: exact with
        linf, else a lower bound near it; with another lift a lower bound. Always in the units of the features. Of a row
        beyond ``feature_range_`` it is that of the row cut to it, a lower bound of its own.
        """
        features = self._features(X)
        support = stated_support(self.support, self.n_features_in_, regression=False)
        return robustness_radius(self._planes(), features, self.transport_norm, self.lift_, support)

    def _features(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        check_features(X)
        return self._cut(np.asarray(validate_data(self, X, dtype=np.float64, reset=False)))

    def _planes(self) -> FloatArray:
        check_is_fitted(self)
        return np.hstack([self.coef_, self.intercept_[:, None]])

    def _sites(self, groups: ArrayLike | None, n_rows: int) -> Sites:
        return one_site(n_rows)

    def _fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None, sample_weight: ArrayLike | None,
        machines: ArrayLike | None,
    ) -> Self:
        self._check_words()
        check_features(X)
        check_labels(y)
        given, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        rows = Rows(
            given, labels, self._sites(groups, len(given)), sample_counts(sample_weight, given),
            machines_of(machines, len(given)),
        ).present()
        features, sites, counts = rows.features, rows.sites, rows.counts
        self.classes_, indices = np.unique(rows.outcomes, return_inverse=True)
        if self.classes_.shape[0] < 2:
            raise ProblemError("the data hold one class only; a classifier needs rows of at least two classes")
        self._is_joint()  # what does not go together is refused before any terms are tuned
        weights = counts * class_weights(self.class_weight, self.classes_, indices, counts)[indices]
        self._class_rows = np.bincount(indices, weights).astype(np.float64)
        scaling = self._scaling_of(features, counts)
        features = scaling.scale(features)
        self.lift_ = fitted_lift(self.lift, self.lift_size, features, self.support)
        table = Table(features, indices.astype(np.float64), sites.index, counts, weights, rows.machine)
        if self._merges(sample_weight is not None or self.class_weight is not None):
            table = table.merged()
        stated = self._statement(table, sites.names)
        check_rows(table.features, np.ones(table.features.shape[0]), stated.specs[0].support)
        heads = head_labels(table.outcomes.astype(np.intp), self.classes_.shape[0])
        stated = self._tuned(table, stated, heads, self._class_rows if self._leaves_the_loss() else None)
        table = replace(table, features=self._lifted(table.features))
        runs, heads = self._runs(table, stated, self._wanted_gap())
        planes = self._weights(runs)
        found = coupled(planes, table, stated) if self._couples(stated) else None
        if found is not None:
            planes = found.planes
            runs = [replace(run, weights=weights) for run, weights in zip(runs, planes, strict=True)]
        self._held_out = None
        if n_folds := calibration_folds(self.calibration_folds):
            self.probability_scale_, self._held_out = self._calibrated(table, stated, n_folds)
        self._keep(runs, heads, table, stated)
        own = self._in_own_units(scaling)
        ends = own(planes if self.fit_intercept else np.pad(planes, ((0, 0), (0, 1))))
        self.coef_, self.intercept_ = ends[:, :-1], ends[:, -1]
        self.coupling_ = found and replace(found, planes=ends, trained=own(found.trained))
        return self

    def _runs(self, table: Table, stated: Statement, gap: float) -> tuple[list[Training], FloatArray]:
        """Training of each head, and its labels (K, N); of all classes as one problem the one training."""
        if self._is_joint():
            return [self._joint(table, stated, gap)], table.outcomes[None]
        heads = head_labels(table.outcomes.astype(np.intp), self.classes_.shape[0])
        return [self._solve(table, stated, labels, gap) for labels in heads], heads

    def _loss(self) -> Loss:
        """The stated loss; where none is, the hinge, or that which "auto" takes of several classes or a rare one."""
        if self.loss is not None:
            return super()._loss()
        asked_for = len(self.classes_) > 2 or is_rare(self._class_rows)
        return chosen_loss(AUTO_LOSS if asked_for and self._leaves_the_loss() else "hinge", self.task)

    def _leaves_the_loss(self) -> bool:
        """Whether the loss is left to "auto"."""
        return self.loss is None and isinstance(self.tuning, str) and self.support is None

    def _couples(self, stated: Statement) -> bool:
        """Whether the trained planes are coupled, by the rule of a plan: of several classes, by "auto", logistic."""
        spec = stated.specs[0]
        return all((
            isinstance(self.tuning, str), len(self.classes_) > 2, not self._is_joint(), spec.loss.name == "logistic",
            spec.support is None, spec.fit_intercept, stated.client_radius == 0,
            self.method not in METHODS or METHODS[self.method].is_robust,
        ))

    def _is_joint(self) -> bool:
        """Whether all classes are one problem; two are so in any case, by one plane."""
        plain = self.support is None and self.tuning is None and self.method == AUTO and self.loss == "hinge"
        return is_joint(self.multi_class, plain=plain) and len(self.classes_) > 2

    def _joint(self, table: Table, stated: Statement, gap: float) -> Training:
        return joint_training(
            table, stated, len(self.classes_), mixture_ball(self.client_norm, stated.client_radius), gap=gap,
            absolute_gap=None if self.absolute_gap is None else number("absolute_gap", self.absolute_gap),
            max_rounds=whole_number("max_rounds", self.max_rounds), fit_intercept=bool(self.fit_intercept),
        )

    def _weights(self, runs: list[Training]) -> FloatArray:
        """Planes of all heads, (K, P + 1), or (K, P) without intercepts."""
        if self._is_joint():
            return joint_planes(runs[0].weights, len(self.classes_), fit_intercept=bool(self.fit_intercept))
        return np.stack([run.weights for run in runs])

    def _risks(self, runs: list[Training], heads: FloatArray, table: Table, stated: Statement) -> FloatArray:
        """Worst-case risk of each head at each site (K, G); of all classes as one problem (1, G)."""
        if self._is_joint():
            return joint_risks(runs[0].weights, table, stated, len(self.classes_))
        return super()._risks(runs, heads, table, stated)

    def _calibrated(self, table: Table, stated: Statement, n_folds: int) -> tuple[float, OutOfFold]:
        """Scale of the probabilities and what sets are made of: each fold's scores under a model of the others."""
        folds = deal_folds(table, n_folds)
        rough = max(self._wanted_gap(), ROUGH)
        found = fold_models(
            table, folds, n_folds, lambda part: list(self._part_planes(part, stated, rough)),
            fit_intercept=bool(self.fit_intercept),
        )
        tested, classes = table.take(found.rows), table.outcomes[found.rows].astype(np.intp)
        scale = likely_scale(scores_of_classes(found.scores), classes, tested.counts) if found.rows.size else 1.0
        return scale, found.out_of_fold(tested, own_margins(scores_of_both(found.scores), classes), stated.names)

    def _part_planes(self, part: Table, stated: Statement, gap: float) -> FloatArray:
        """Planes of a model of a part of the rows, made as those of the fit are."""
        planes = self._weights(self._runs(part, stated, gap)[0])
        return coupled(planes, part, stated).planes if self._couples(stated) else planes

    def _cost(self) -> float:
        return number("label_flip_cost", self.label_flip_cost)


class FederatedClassifier(RobustClassifier):
    """A classifier over several sites (clients), told apart by ``groups``."""

    def fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
        machines: ArrayLike | None = None,
    ) -> Self:
        """Fit to features (N, P), labels (N,), the site of each row (N,), how often it counts (N,), its machine (N,).

        Without groups all rows are one site, and a warning says so. ``machines`` names whose rows are held out together
        (``models.estimators.folds``); two sites' machines of one name are two.
        """
        return self._fit(X, y, groups, sample_weight, machines)

    def _sites(self, groups: ArrayLike | None, n_rows: int) -> Sites:
        return sites_of(groups, n_rows)
