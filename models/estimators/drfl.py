r"""Classifier of distributionally robust federated learning (DRFL): :class:`FederatedDRClassifier`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.basics import TransportNorm
from models.estimators.choices import ClientWeights, SupportArgument
from models.estimators.classifier import FederatedClassifier
from models.estimators.lifting import LiftArgument


@dataclass(eq=False, repr=False)
class FederatedDRClassifier(FederatedClassifier):
    r"""Distributionally robust classifier over clients (DRFL, problem 2), certified.

        min_{w, b} max_{q in Q} sum_s q_s sup { E_P L(y (<w, x> + b)) : W(P, data of client s) <= radius_s },

    ``Q = { q in the simplex : ||q - client_weights||_p <= client_radius }`` and transport cost
    ``||x - x'|| + label_flip_cost 1[y != y']``. Two classes, or more by one-vs-rest (risks add up over the heads, each
    head with a worst mixture of its own). The clients are told apart by ``groups``.

    Parameters
    ----------
    loss : {"hinge", "smooth_hinge", "logistic"} or None, default None
        None: the hinge; with ``tuning="auto"`` and no support the logistic loss, as a plan does, of three classes or
        more, and of two where the rarer one has less than .08 of the rows by their weights.
    radius : float, "samples", or mapping of group to either, default "samples"
        Wasserstein radius of each client; see :class:`models.estimators.DRSVC`.
    label_flip_cost : float, default 1.0
        Above 0; infinity trusts all labels.
    client_radius : float, default 0.0
        Radius theta of the ball over the clients; 0 keeps the weights, 2 or more is the worst client.
    client_norm : {1, 2, inf} or {"l1", "l2", "linf"}, default "l2"
        Norm p of that ball.
    client_weights : "uniform", "samples", mapping of group to float, or None (as "uniform")
        Centre of that ball; "samples" counts the rows by their sample weights.
    transport_norm : {"l1", "l2", "linf"}, default "l2"
    support : None, (low, high), (C, d), BoxSupport or PolytopeSupport, default None
        Box, or polytope ``C x <= d``, that no feature vector can leave; with the hinge loss only.
    fit_intercept, method, gap, absolute_gap, max_rounds, method_parameters, class_weight, calibration_folds, lift,
    lift_size, tuning, random_state
        As in :class:`models.estimators.DRSVC`; "auto" trains with all rows at hand. With ``tuning="auto"``, the
        logistic loss, three classes or more, intercepts, no support, ``client_radius`` 0 and a method of the worst
        case, the planes are coupled after their training (``models.tuning.coupling``), as those of a plan are.

    Attributes
    ----------
    coef_, intercept_, classes_, worst_case_risk_, objective_, objective_lower_bound_, certified_gap_, objective_name_,
    n_rounds_, site_risks_, radius_, feature_scale_, feature_range_, probability_scale_ : as in ``DRSVC``.
    client_weights_ : dict of group to its share q_s in the worst mixture at the fit (``{"all": 1.0}`` without groups;
        the mean over the heads for more than two classes).
    coupling_ : None, or how the planes were coupled: ``coupling`` (K, K + 1), matrix and offsets; ``trained``
        (K, P + 1), the planes before; ``planes``, ``coef_`` and ``intercept_``; ``objective``, ``before`` and
        ``at_least`` of the coupling; ``rounds`` and ``bytes_per_site``. ``objective_``, ``objective_lower_bound_`` and
        ``certified_gap_`` are of the trained planes, which minimise the risk; all else, ``worst_case_risk_``,
        ``site_risks_``, predictions, sets and ``robustness_radius``, is of the coupled ones. The coupling is not
        certified to minimise a worst-case risk.
    """

    loss: str | None = None
    radius: float | str | Mapping[Any, Any] = "samples"
    label_flip_cost: float = 1.0
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
    class_weight: Mapping[Any, float] | str | None = None
    calibration_folds: int = 3
    lift: LiftArgument = None
    lift_size: int = 8
    random_state: Any = None
    tuning: str | Mapping[str, Any] | None = None
