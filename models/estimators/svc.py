r"""The scikit-learn face of the core: :class:`DRSVC` on one data set, :class:`FederatedDRSVC` on several sites.

Both minimise the exact worst-case hinge risk over Wasserstein balls (FDR problem 5) and say with every fit how far from
the optimum it can be at most. Features are taken as given: nothing is scaled behind a radius or a label flip cost,
unless ``tuning="auto"`` leaves the terms to the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import ArrayLike

from models.basics import ProblemError, TransportNorm
from models.estimators.choices import ClientWeights, SupportArgument
from models.estimators.classifier import FederatedClassifier, RobustClassifier
from models.estimators.lifting import LiftArgument
from models.estimators.sites import Sites, sites_of


@dataclass(eq=False, repr=False)
class DRSVC(RobustClassifier):
    r"""Distributionally robust support vector classifier, certified.

        min_{w, b} sup { E_Q max(0, 1 - y (<w, x> + b)) : W(Q, data) <= radius }

    over a Wasserstein ball with cost ``||x - x'|| + label_flip_cost 1[y != y']`` (Shafieezadeh-Abadeh, Kuhn and
    Mohajerin Esfahani 2019). Two classes, or more: by one-vs-rest (risks add up over the heads) or as one problem.

    Parameters
    ----------
    radius : float or "samples", default "samples"
        Wasserstein radius, at or above 0, in the units of the features as given; 0 is the plain hinge risk. "samples":
        ``min(s, label_flip_cost) / (10 N)``, the rule of the FDR-SVM paper in units in which the features have the
        range 1, s being the median of their ranges and N how many rows there are (by their sample weights). The
        minimum keeps label flips dearer than a tenth of a row where features are measured in small units.
    label_flip_cost : float, default 1.0
        Above 0; infinity trusts all labels.
    transport_norm : {"l1", "l2", "linf"}, default "l2"
        Norm of a move of the features; the weights are charged by its dual.
    fit_intercept : bool, default True
        Whether there is an intercept; it is free of transport cost.
    method : str, default "auto"
        "auto" solves the problem at once (interior point; else a level bundle), or a federated method by name
        (``models.methods.catalogue``), run on the features as they are.
    gap : float, default 1e-4
        Wanted certified relative gap; a fit that does not reach it warns and tells what it reached.
    absolute_gap : float or None, default None
        Distance of the bounds, in the units of the loss, that is near enough whatever the relative gap: where the
        optimum is 0 that cannot close. None: ``gap`` times a thousandth of the risk of zero weights. For each head of
        one-vs-rest.
    max_rounds : int, default 1000
        Limit of rounds, of the methods that have rounds.
    support : None, (low, high), (C, d), BoxSupport or PolytopeSupport, default None
        Box (bounds as numbers or vectors), or polytope ``C x <= d``, that no feature vector can leave.
    method_parameters : None or mapping of str to float
        Numbers of a method by name (``models/README.md``), such as ``{"rho": 0.1}``; "auto" has none.
    class_weight : None, "balanced", or mapping of class to float
        How much a row of a class weighs, times its sample weight, in its site's distribution and in every head; 1 for
        a class that a mapping leaves out. A class that the data do not have is refused.
    calibration_folds : int, default 3
        Folds in which the scale of ``predict_proba`` and the sets of ``predict_set`` are found, each a further fit (to
        a gap of 1e-2, on the other folds), from 2; 0: there are neither.
    lift : None, "spline", or a lift of ``models.features``, default None
        "spline": each feature's part of a score is a line with ``lift_size`` segments of equal width between its least
        and its largest value in X, over all sites (``models.features.spline``); beyond them it is constant. Radius and
        ``robustness_radius`` stay in the units of the features. A lift that is given takes the features as they are;
        the ball is one of lifted features then, which holds that of ``radius / lift.lipschitz(transport_norm)``. Not
        beside a support.
    lift_size : int, default 8
        Segments of "spline", from 1 (the linear model, constant beyond the data).
    random_state : int, RandomState or None
        No method draws random numbers at present; here so that code that sets it works.
    tuning : None, "auto" or mapping, default None
        Choose the terms by cross-validation inside the sites (``models.tuning``): "auto" tries the stated radius 0.3,
        1, 3 and 10 times, and where no lift is given splines of 6 segments too, and for 21 features and fewer (without
        an intercept only of features between 0 and 1) products of all pairs and squares, of a target products of all
        pairs beside such splines, and takes the best of three folds; where a site has too few rows for them, or of a
        class, the terms as they are, and ``tuning_why_`` says so. Features are trained on by their ranges in X, as a
        plan has them by those of the asset type, unless they all lie in [0, 1] and none within a hundredth of it, or
        there is a support or a given lift; likely mistakes, and long tails where classes are told apart, are cut first,
        as a drafted asset type cuts them (``feature_range_``). Radius and label_flip_cost are then in shares of
        ``feature_scale_``; planes, lift and ``robustness_radius`` stay in the features' own units. A mapping takes the
        features as they are, and
        gives some of ``radius`` (factors; without it those of "auto"), ``label_flip_cost``, ``client_radius`` and
        ``segments`` (0: no splines), and may give ``folds`` (5), ``seed``, ``rule`` ("one-standard-error", "best" or
        "paired") and ``budget`` (2 trainings; 3 of "auto").
        The loss stays the hinge, and planes of several classes are not coupled (``FederatedDRClassifier`` does both).
        ``tuning_curve_`` and ``tuning_why_`` say what was tried and chosen, ``radius_`` and ``lift_`` what was used.
    multi_class : {"one_vs_rest", "crammer_singer"}, default "one_vs_rest"
        Of more than two classes. "one_vs_rest": a plane a class against the rest; risk and bounds are sums over the
        planes. "crammer_singer": all classes as one problem, the worst-case risk of ``max_{k != y} max(0, 1 + s_k -
        s_y)``, with one mixture of the sites and one certificate (``models.worst_case.crammer_singer``); exact, for
        features without bounds, by method "auto", which goes in rounds then: hundreds for a few dozen weights.

    Attributes
    ----------
    coef_, intercept_ : (K, P) and (K,); K is 1 for two classes. With a lift P counts the lifted features: with splines
        ``coef_[c, j * lift_size + k]`` is the slope of feature j on its segment k.
    lift_ : the lift, or None.
    classes_ : the classes in sorted order; for two, the second has positive scores.
    worst_case_risk_ : exact worst-case risk of the fit over the balls as stated, whatever the method minimised.
    objective_name_ : what the method minimised, in plain words.
    objective_, objective_lower_bound_ : its value at the fit and a proven lower bound of it. Where it is the worst-case
        risk ("auto" and the robust methods) ``objective_`` is ``worst_case_risk_`` up to rounding.
    certified_gap_ : ``(objective_ - objective_lower_bound_) / objective_``: how far the fit can be from the best one
        for that objective; only where that is the worst-case risk it speaks of the robust optimum.
    n_rounds_ : rounds that were run (1 when solved at once).
    site_risks_ : worst-case risk by site; here ``{"all": worst_case_risk_}``.
    radius_ : dict of site to the radius of its ball, of moves in shares of ``feature_scale_``.
    feature_scale_ : (P,) what counts as a move of 1 of each feature: its range in X where "auto" tunes, else 1.
    feature_range_ : (2, P) ends to which features are cut, in the fit and after it; infinite where they are not.
    probability_scale_ : scale of the scores in ``predict_proba``.
    n_features_in_, feature_names_in_ : as in every estimator.
    """

    radius: float | str = "samples"
    label_flip_cost: float = 1.0
    transport_norm: TransportNorm = "l2"
    fit_intercept: bool = True
    method: str = "auto"
    gap: float = 1e-4
    absolute_gap: float | None = None
    max_rounds: int = 1000
    support: SupportArgument = None
    method_parameters: Mapping[str, float] | None = None
    class_weight: Mapping[Any, float] | str | None = None
    calibration_folds: int = 3
    lift: LiftArgument = None
    lift_size: int = 8
    random_state: Any = None
    tuning: str | Mapping[str, Any] | None = None
    multi_class: str = "one_vs_rest"

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, machines: ArrayLike | None = None
    ) -> Self:
        """Fit to features (N, P), labels (N,) of any type and how often each row counts (N,): k is as k copies.

        ``machines`` (N,) names the machine of each row: a fold, of a tuning or of ``calibration_folds``, holds whole
        machines then (``models.estimators.folds``).
        """
        return self._fit(X, y, None, sample_weight, machines)


@dataclass(eq=False, repr=False)
class FederatedDRSVC(FederatedClassifier):
    r"""Distributionally robust support vector classifier over sites (FDR-SVM), certified.

        min_{w, b} sum_g a_g sup { E_Q max(0, 1 - y (<w, x> + b)) : W(Q, data of site g) <= radius_g }

    with the sites told apart by ``groups``. Parameters and attributes as in :class:`DRSVC`, and:

    Parameters
    ----------
    radius : float, "samples", or mapping of group to either
        One radius for all sites, or one for each; "samples" counts each site's own rows.
    weights : None, "uniform", "samples", or mapping of group to float
        Weight a_g of each site, at or above 0, sum 1; None and "uniform": all alike; "samples": as many as its rows,
        by their sample weights.
    method : str, default "auto"
        "auto" solves the same objective at once, for all rows are at hand here; a method of the catalogue, such as
        "level-bundle" or "fdr-admm", goes round by round as sites that keep their data would.

    Attributes
    ----------
    site_risks_ : dict of group to its worst-case risk (``{"all": ...}`` without groups).
    """

    weights_word = "weights"
    radius: float | str | Mapping[Any, Any] = "samples"
    label_flip_cost: float = 1.0
    transport_norm: TransportNorm = "l2"
    fit_intercept: bool = True
    method: str = "auto"
    gap: float = 1e-4
    absolute_gap: float | None = None
    max_rounds: int = 1000
    support: SupportArgument = None
    weights: ClientWeights = None
    method_parameters: Mapping[str, float] | None = None
    class_weight: Mapping[Any, float] | str | None = None
    calibration_folds: int = 3
    lift: LiftArgument = None
    lift_size: int = 8
    random_state: Any = None
    tuning: str | Mapping[str, Any] | None = None
    multi_class: str = "one_vs_rest"

    def _sites(self, groups: ArrayLike | None, n_rows: int) -> Sites:
        if groups is None and (isinstance(self.weights, Mapping) or isinstance(self.radius, Mapping)):
            raise ProblemError("weights and radius by group need groups, the site of each row")
        return sites_of(groups, n_rows)
