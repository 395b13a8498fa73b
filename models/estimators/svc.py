r"""The scikit-learn face of the core: :class:`DRSVC` on one data set, :class:`FederatedDRSVC` on several sites.

Both minimise the exact worst-case hinge risk over Wasserstein balls (FDR problem 5) and say with every fit how far from
the optimum it can be at most. The radius is a distance between feature vectors as given: nothing is scaled behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import ArrayLike

from models.estimators.classifier import RobustClassifier
from models.estimators.sites import one_site, sites_of
from models.problem import ProblemError, TransportNorm

Support = tuple[ArrayLike, ArrayLike] | None


class DRSVC(RobustClassifier):
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
        return self._fit(X, y, one_site(self.radius))


class FederatedDRSVC(RobustClassifier):
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
            return self._fit(X, y, one_site(self.radius))
        return self._fit(X, y, sites_of(groups, self.radius, self.weights))
