r"""The scikit-learn face of the core: :class:`DRSVC` on one data set, :class:`FederatedDRSVC` on several sites.

Both minimise the exact worst-case hinge risk over Wasserstein balls (FDR problem 5) and say with every fit how far from
the optimum it can be at most. The radius is a distance between feature vectors as given: nothing is scaled behind it.
Needs scikit-learn (extra ``sklearn``); nothing else in ``models`` does.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from models.ambiguity import box_support, check_rows
from models.certificates import combined_certificate, robustness_radius
from models.federation import Training, train
from models.methods.catalogue import METHODS
from models.multiclass import head_labels, predict_class, predict_scores
from models.pooled import train_pooled
from models.pooled_box import train_pooled_box
from models.problem import FloatArray, ProblemError, RobustSpec, SiteProblem, TransportNorm

Support = tuple[ArrayLike, ArrayLike] | None


class _RobustClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the two classifiers share: fitting one-vs-rest heads over sites, and using them."""

    label_flip_cost: float
    transport_norm: TransportNorm
    fit_intercept: bool
    method: str
    gap: float
    max_rounds: int
    support: Support

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

    def _fit(self, X: ArrayLike, y: ArrayLike, sites: _Sites) -> Self:
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
            radius=_number("radius", radius),
            label_flip_cost=_number("label_flip_cost", self.label_flip_cost),
            transport_norm=self.transport_norm,
            support=box_support(self.support, n_features),
            fit_intercept=bool(self.fit_intercept),
        )

    def _train(self, sites: dict[str, SiteProblem], weights: dict[str, float]) -> Training:
        gap, limit = _number("gap", self.gap), self.max_rounds
        if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1:
            raise ProblemError(f"max_rounds must be a whole number at or above 1, got {limit!r}")
        if self.method != "auto":
            if self.method not in METHODS:
                raise ProblemError(f"method must be 'auto' or one of {', '.join(sorted(METHODS))}, got {self.method!r}")
            return train(sites, weights=weights, method=self.method, gap=gap, max_rounds=int(limit))
        if self.support is None:
            return train_pooled(sites, weights=weights, gap=gap)
        return train_pooled_box(sites, weights=weights, gap=gap, max_rounds=int(limit))

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


class DRSVC(_RobustClassifier):
    r"""Distributionally robust support vector classifier, certified.

        min_{w, b} sup { E_Q max(0, 1 - y (<w, x> + b)) : W(Q, data) <= radius }

    over a Wasserstein ball with cost ``||x - x'|| + label_flip_cost 1[y != y']`` (Shafieezadeh-Abadeh, Kuhn and
    Mohajerin Esfahani 2019). Two classes, or more by one-vs-rest (risks add up over the heads).

    Parameters
    ----------
    radius : float, default 0.01
        Wasserstein radius, at or above 0, in the units of the features as given; 0 is the plain hinge risk.
    label_flip_cost : float, default 1.0
        Above 0; infinity trusts all labels.
    transport_norm : {"l1", "l2", "linf"}, default "l2"
        Norm of a move of the features; the weights are charged by its dual.
    fit_intercept : bool, default True
        Whether there is an intercept; it is free of transport cost.
    method : str, default "auto"
        "auto" solves the problem at once (interior point; on a box a level bundle), or a federated method by name
        (``models.methods.catalogue``), run on the features as they are.
    gap : float, default 1e-4
        Wanted certified relative gap; a fit that does not reach it warns and tells what it reached.
    max_rounds : int, default 1000
        Limit of rounds, of the methods that have rounds.
    support : None or (low, high), default None
        Box that no feature can leave, bounds as numbers or vectors.
    random_state : int, RandomState or None
        No method draws random numbers at present; here so that code that sets it works.

    Attributes
    ----------
    coef_, intercept_ : (K, P) and (K,); K is 1 for two classes.
    classes_ : the classes in sorted order; for two, the second has positive scores.
    worst_case_risk_ : exact worst-case risk of the fit, an upper bound on the optimum.
    certified_gap_ : the optimum is at least ``(1 - certified_gap_) * worst_case_risk_``.
    n_rounds_ : rounds that were run (1 when solved at once).
    site_risks_ : worst-case risk by site; here ``{"all": worst_case_risk_}``.
    n_features_in_, feature_names_in_ : as in every estimator.
    """

    def __init__(
        self,
        radius: float = 0.01,
        label_flip_cost: float = 1.0,
        transport_norm: TransportNorm = "l2",
        fit_intercept: bool = True,
        method: str = "auto",
        gap: float = 1e-4,
        max_rounds: int = 1000,
        support: Support = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.label_flip_cost = label_flip_cost
        self.transport_norm = transport_norm
        self.fit_intercept = fit_intercept
        self.method = method
        self.gap = gap
        self.max_rounds = max_rounds
        self.support = support
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to features (N, P) and labels (N,) of any type."""
        return self._fit(X, y, _one_site(self.radius))


class FederatedDRSVC(_RobustClassifier):
    r"""Distributionally robust support vector classifier over sites (FDR-SVM), certified.

        min_{w, b} sum_g a_g sup { E_Q max(0, 1 - y (<w, x> + b)) : W(Q, data of site g) <= radius_g }

    with the sites told apart by ``groups``. Parameters and attributes as in :class:`DRSVC`, and:

    Parameters
    ----------
    radius : float, or mapping of group to float
        One radius for all sites, or one for each.
    weights : None, or mapping of group to float
        Weight a_g of each site, at or above 0, sum 1; None: all alike.
    method : str, default "auto"
        "auto" solves the same objective at once, for all rows are at hand here; a method of the catalogue, such as
        "level-bundle" or "fdr-admm", goes round by round as sites that keep their data would.

    Attributes
    ----------
    site_risks_ : dict of group to its worst-case risk (``{"all": ...}`` without groups).
    """

    def __init__(
        self,
        radius: float | Mapping[Any, float] = 0.01,
        label_flip_cost: float = 1.0,
        transport_norm: TransportNorm = "l2",
        fit_intercept: bool = True,
        method: str = "auto",
        gap: float = 1e-4,
        max_rounds: int = 1000,
        support: Support = None,
        weights: Mapping[Any, float] | None = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.label_flip_cost = label_flip_cost
        self.transport_norm = transport_norm
        self.fit_intercept = fit_intercept
        self.method = method
        self.gap = gap
        self.max_rounds = max_rounds
        self.support = support
        self.weights = weights
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit to features (N, P), labels (N,) and the site of each row (N,); without groups all rows are one site."""
        if groups is None:
            if self.weights is not None or isinstance(self.radius, Mapping):
                raise ProblemError("weights and radius by group need groups, the site of each row")
            return self._fit(X, y, _one_site(self.radius))
        return self._fit(X, y, _sites_of(groups, self.radius, self.weights))


@dataclass(frozen=True)
class _Sites:
    """Radius and weight of each site by its name; ``labels`` (N,) is None for one site."""

    labels: NDArray[Any] | None
    radius: Mapping[Hashable, Any]
    weights: Mapping[Hashable, float]

    def rows(self, n_rows: int) -> dict[Hashable, Any]:
        """Rows of each site, in the order of the names."""
        if self.labels is None:
            return {"all": slice(None)}
        if self.labels.shape[0] != n_rows:
            raise ProblemError(f"groups must name the site of each of the {n_rows} rows, got {self.labels.shape[0]}")
        return {name: np.flatnonzero(self.labels == name) for name in self.radius}


def _one_site(radius: Any) -> _Sites:
    return _Sites(None, {"all": radius}, {"all": 1.0})


def _sites_of(groups: ArrayLike, radius: Any, weights: Mapping[Any, float] | None) -> _Sites:
    labels = column_or_1d(np.asarray(groups))
    if (labels != labels).any():
        raise ProblemError("groups must name the site of every row, some are missing (NaN)")
    names = np.unique(labels).tolist()
    by_site = dict(radius) if isinstance(radius, Mapping) else dict.fromkeys(names, radius)
    shares = dict(weights) if weights is not None else dict.fromkeys(names, 1.0 / max(len(names), 1))
    for what, given in (("radius", by_site), ("weights", shares)):
        if set(given) != set(names):
            raise ProblemError(f"{what} is given for groups {_listed(given)}, the data are of groups {_listed(names)}")
    return _Sites(labels, {name: by_site[name] for name in names}, {n: _number("weight", shares[n]) for n in names})


def _listed(names: Any) -> str:
    return ", ".join(sorted(str(name) for name in names))


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ProblemError(f"{name} must be a number, got {value!r}") from None
