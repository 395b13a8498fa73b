r"""Distributionally robust regression over clients, certified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from models.basics import FloatArray, ProblemError, TransportNorm
from models.conformal.coverage import asked_level
from models.conformal.cross import OutOfFold, cross_interval
from models.estimators.choices import ClientWeights, SupportArgument, chosen_loss, stated_support
from models.estimators.columns import check_features, check_targets
from models.estimators.folds import ROUGH, calibration_folds, deal_targets, fold_models
from models.estimators.lifting import LiftArgument, fitted_lift
from models.estimators.scaling import target_scale
from models.estimators.sites import Rows, machines_of, sites_of
from models.estimators.solving import RobustFit, Statement
from models.estimators.table import Table, sample_counts
from models.estimators.values import number
from models.evaluation.intervals import residual_interval
from models.geometry.supports import BoxSupport
from models.losses.base import Loss, Task
from models.losses.regression import EpsilonInsensitive, Huber


@dataclass(eq=False, repr=False)
class FederatedDRRegressor(RobustFit, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Distributionally robust regression over clients (DRFL, problem 2), certified.

        min_{w, b} max_{q in Q} sum_s q_s sup { E_P L(<w, x> + b - y) : W(P, data of client s) <= radius_s },

    with transport cost ``||x - x'|| + target_cost |y - y'|`` and Q as in
    :class:`models.estimators.FederatedDRClassifier`.

    Parameters
    ----------
    loss : {"huber", "epsilon_insensitive", "pinball"}, default "huber"
    epsilon : float or None
        Threshold of the Huber loss or tolerance of the epsilon-insensitive one, in the units of the target; None: 1.35
        and 0.1 times ``target_scale_``. Refused with the pinball loss, which has none.
    quantile : float or None
        Of the pinball loss, between 0 and 1 (default 0.5); refused with the other losses.
    target_cost : float or None, default None
        Cost kappa of moving a target by 1, above 0; infinity trusts all targets; None: 1.
    label_flip_cost : float or None, default None
        The same kappa by the classifier's name, for code that sets both alike. Give one of the two.
    support : None, (low, high), (low, high, target_low, target_high), (C, c, d), BoxSupport or PolytopeSupport
        Box, or polytope ``C x + c y <= d``; with the epsilon-insensitive and the pinball loss only.
        Estimates and intervals are cut to a range of the target that a box has.
    radius, client_radius, client_norm, client_weights, transport_norm, fit_intercept, method, gap, absolute_gap,
    max_rounds, method_parameters, lift, lift_size, tuning, random_state
        As in the classifier; a tuning scores by the mean absolute error, or the pinball loss. With "auto" target_cost
        is in shares of ``target_scale_``, as radii are of ``feature_scale_``; risks stay in the target's unit.
    calibration_folds : int, default 3
        Folds whose errors make conformal intervals, each a further fit (to a gap of 1e-2, on the other folds), from 2;
        0: there are none but those by Markov's inequality.

    Attributes
    ----------
    coef_ : (P,). intercept_ : float. lift_ : with a lift P counts the lifted features.
    worst_case_risk_, objective_, objective_lower_bound_, certified_gap_, objective_name_, n_rounds_, site_risks_,
    radius_, feature_scale_, feature_range_, client_weights_ : as in the classifier.
    target_scale_ : what counts as a move of 1 of the target: its range in y where "auto" scales the features too and
        targets are not in [0, 1] already, else 1.
    """

    task: ClassVar[Task] = "regression"

    loss: str = "huber"
    epsilon: float | None = None
    quantile: float | None = None
    radius: float | str | Mapping[Any, Any] = "samples"
    target_cost: float | None = None
    label_flip_cost: float | None = None
    client_radius: float = 0.0
    client_norm: Any = "l2"
    client_weights: ClientWeights = None
    transport_norm: TransportNorm = "l2"
    support: SupportArgument = None
    fit_intercept: bool = True
    method: str = "auto"
    gap: float = 1e-4
    absolute_gap: float | None = None
    max_rounds: int = 1000
    method_parameters: Mapping[str, float] | None = None
    calibration_folds: int = 3
    lift: LiftArgument = None
    lift_size: int = 8
    random_state: Any = None
    tuning: str | Mapping[str, Any] | None = None

    def fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
        machines: ArrayLike | None = None,
    ) -> Self:
        """Fit to features (N, P), targets (N,), the client of each row (N,), how often it counts and its machine (N,).

        A weight of k is as k copies of the row. Without groups all rows are one client, and a warning says so.
        ``machines`` names whose rows are held out together (``models.estimators.folds``).
        """
        return self._fit(X, y, groups, sample_weight, machines)

    def _fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None, sample_weight: ArrayLike | None,
        machines: ArrayLike | None,
    ) -> Self:
        self._check_words()
        check_features(X)
        check_targets(y)
        given, outcomes = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        rows = Rows(
            given, np.asarray(outcomes, dtype=np.float64), sites_of(groups, len(given)),
            sample_counts(sample_weight, given), machines_of(machines, len(given)),
        ).present()
        features, targets, sites, counts = rows.features, rows.outcomes, rows.sites, rows.counts
        scaling = self._scaling_of(features, counts)
        features = scaling.scale(features)
        self._target_scale = target_scale(targets) if self._leaves_the_units() else 1.0
        self.lift_ = fitted_lift(self.lift, self.lift_size, features, self.support)
        self._middle = _middle(targets) if self.fit_intercept and self.support is None else 0.0
        table = Table(features, targets - self._middle, sites.index, counts, counts, rows.machine)
        if self._merges(sample_weight is not None):
            table = table.merged()
        stated = self._statement(table, sites.names)
        stated = self._tuned(table, stated, table.outcomes[None])
        table = replace(table, features=self._lifted(table.features))
        run = self._solve(table, stated, table.outcomes, self._wanted_gap())
        self._held_out, self._fitted_loss = None, stated.specs[0].loss
        if n_folds := calibration_folds(self.calibration_folds):
            self._held_out = self._out_of_fold(table, stated, n_folds)
        self._keep([run], table.outcomes[None], table, stated)
        plane = self._in_own_units(scaling)(run.weights if self.fit_intercept else np.append(run.weights, 0.0))
        self.target_scale_ = self._target_scale
        self.coef_, self.intercept_ = plane[:-1], self._middle + float(plane[-1])
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Estimate for each row (n,); where ``support`` is a box with a range of the target, cut to that."""
        return self._in_target_range(self._estimates(self._features(X)))

    def predict_interval(
        self, X: ArrayLike, coverage: float = 0.9, method: Literal["conformal", "markov"] = "conformal"
    ) -> FloatArray:
        """Interval around each estimate at a coverage in (0, 1): low and high ends, (n, 2).

        "conformal": it holds the target of a share ``coverage`` of all new rows of every group, on the average over the
        draw of the data, from the errors of rows out of fold. It is as wide, below and above, as the errors are where
        the estimate lies (``models.conformal.cross`` has the formula, and says what is proven).
        "markov": what ``worst_case_risk_`` implies, for every distribution of the balls as stated, whatever the method
        minimised (``models.evaluation.intervals``); it is wide.

        Raises
        ------
        ProblemError
            Another coverage or method, no folds, or a group with too few rows for the coverage.
        """
        features, coverage = self._features(X), asked_level(number("coverage", coverage))
        if method == "markov":
            below, above = residual_interval(self._fitted_loss, self.worst_case_risk_, coverage)
            value = self._estimates(features)
            return self._in_target_range(np.column_stack([value - above, value - below]))
        if method != "conformal":
            raise ProblemError(f'method of an interval must be "conformal" or "markov", got {method!r}')
        held = self._folds()
        found = cross_interval(held, held.head_scores(self._lifted(features))[:, :, 0], coverage) + self._middle
        return self._in_target_range(found)

    def _features(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        check_features(X)
        return self._cut(np.asarray(validate_data(self, X, dtype=np.float64, reset=False)))

    def _estimates(self, features: FloatArray) -> FloatArray:
        return np.asarray(self._lifted(features) @ self.coef_ + self.intercept_)

    def _in_target_range(self, values: FloatArray) -> FloatArray:
        """Values in the target's unit, cut to its range where the support states one."""
        place = stated_support(self.support, self.n_features_in_, regression=True)
        return np.clip(values, place.target_low, place.target_high) if isinstance(place, BoxSupport) else values

    def _out_of_fold(self, table: Table, stated: Statement, n_folds: int) -> OutOfFold:
        """Errors of each fold under a model of the others, to a rough gap."""
        rough = max(self._wanted_gap(), ROUGH)
        folds = deal_targets(table, n_folds)
        found = fold_models(
            table, folds, n_folds,
            lambda part: [self._solve(part, stated, part.outcomes, rough).weights],
            fit_intercept=bool(self.fit_intercept),
        )
        tested = table.take(found.rows)
        return found.errors_out_of_fold(table, folds, tested, stated.names)

    def _loss(self) -> Loss:
        """The loss; a threshold that is not stated is its default in shares of ``target_scale_``."""
        found = chosen_loss(self.loss, self.task, epsilon=self.epsilon, quantile=self.quantile)
        if self.epsilon is not None or not isinstance(found, Huber | EpsilonInsensitive):
            return found
        return replace(found, epsilon=found.epsilon * self._target_scale)

    def _cost(self) -> float:
        if self.label_flip_cost is None:
            cost = 1.0 if self.target_cost is None else number("target_cost", self.target_cost)
            if not cost > 0:
                raise ProblemError(f"target_cost must be above 0 (infinity allowed), got {cost!r}")
            return cost
        if self.target_cost is not None:
            raise ProblemError("target_cost and label_flip_cost are the same cost by two names: give one of them")
        return number("label_flip_cost", self.label_flip_cost)


def _middle(targets: FloatArray) -> float:
    """Median of the different targets: fitted around it, targets far from 0 lose no digits, and the intercept takes it.

    Of the different ones, so that a weight of k stays as k copies of a row.
    """
    return float(np.median(np.unique(targets)))
