r"""Estimators of distributionally robust federated learning (DRFL): :class:`FederatedDRClassifier` and its kin."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.estimators.choices import ClientWeights, SupportArgument, client_sites, mixture_ball, stated_support
from models.estimators.classifier import RobustClassifier
from models.estimators.sites import number
from models.estimators.solving import solve
from models.federation import Training
from models.losses.base import Loss, Task
from models.losses.catalogue import get_loss, losses_for
from models.problem import ProblemError, RobustSpec, SiteProblem, TransportNorm


class DrflFit:
    """How both estimators state and solve the problem; parameters are those of the estimators."""

    loss: str
    radius: Any
    client_radius: float
    client_norm: Any
    client_weights: ClientWeights
    transport_norm: TransportNorm
    support: SupportArgument
    fit_intercept: bool
    method: str
    gap: float
    max_rounds: int

    def spec(self, loss: Loss, radius: Any, cost: float, n_features: int) -> RobustSpec:
        """Ball of one client."""
        return RobustSpec(
            radius=number("radius", radius),
            label_flip_cost=cost,
            transport_norm=self.transport_norm,
            support=stated_support(self.support, n_features, regression=loss.task == "regression"),
            fit_intercept=bool(self.fit_intercept),
            loss=loss,
        )

    def solve(self, sites: dict[str, SiteProblem], weights: dict[str, float]) -> Training:
        """Train over the clients, at once or by the method that was named."""
        mixture = mixture_ball(self.client_norm, self.client_radius)
        return solve(sites, weights, self.method, self.gap, self.max_rounds, mixture)


def chosen_loss(name: str, task: Task, *, epsilon: float | None = None, quantile: float | None = None) -> Loss:
    """Loss by name, if it is one of the task."""
    if name not in losses_for(task):
        kind = "classifier" if task == "classification" else "regressor"
        raise ProblemError(f"loss of a {kind} must be one of {', '.join(losses_for(task))}, got {name!r}")
    return get_loss(name, epsilon=epsilon, quantile=quantile)


def mean_weights(runs: list[Training], names: list[Hashable]) -> dict[Hashable, float]:
    """Worst mixture of the clients at the fit, the mean over the heads."""
    return {
        name: float(np.mean([run.mixture_weights[str(g)] for run in runs])) for g, name in enumerate(names)
    }  # fmt: skip


class FederatedDRClassifier(DrflFit, RobustClassifier):
    r"""Distributionally robust classifier over clients (DRFL, problem 2), certified.

        min_{w, b} max_{q in Q} sum_s q_s sup { E_P L(y (<w, x> + b)) : W(P, data of client s) <= radius_s },

    ``Q = { q in the simplex : ||q - client_weights||_p <= client_radius }`` and transport cost
    ``||x - x'|| + label_flip_cost 1[y != y']``. Two classes, or more by one-vs-rest (risks add up over the heads, each
    head with a worst mixture of its own). The clients are told apart by ``groups``.

    Parameters
    ----------
    loss : {"hinge", "smooth_hinge", "logistic"}, default "hinge"
    radius : float, or mapping of group to float, default 0.01
        Wasserstein radius of each client, in the units of the features as given.
    label_flip_cost : float, default 1.0
        Above 0; infinity trusts all labels.
    client_radius : float, default 0.0
        Radius theta of the ball over the clients; 0 keeps the weights, 2 or more is the worst client.
    client_norm : {1, 2, inf} or {"l1", "l2", "linf"}, default "l2"
        Norm p of that ball.
    client_weights : "uniform", "samples", mapping of group to float, or None (as "uniform")
        Centre of that ball.
    transport_norm : {"l1", "l2", "linf"}, default "l2"
    support : None, (low, high), or (C, d), default None
        Box, or polytope ``C x <= d``, that no feature vector can leave; with the hinge loss only.
    fit_intercept, method, gap, max_rounds, random_state
        As in :class:`models.estimators.DRSVC`; "auto" trains with all rows at hand.

    Attributes
    ----------
    coef_, intercept_, classes_, worst_case_risk_, certified_gap_, n_rounds_, site_risks_ : as in ``DRSVC``.
    client_weights_ : dict of group to its share q_s in the worst mixture at the fit (``{"all": 1.0}`` without groups;
        the mean over the heads for more than two classes).
    """

    def __init__(
        self,
        loss: str = "hinge",
        radius: float | Mapping[Any, float] = 0.01,
        label_flip_cost: float = 1.0,
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
        self.radius = radius
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
        """Fit to features (N, P), labels (N,) and the client of each row (N,); without groups there is one client."""
        return self._fit(X, y, client_sites(groups, self.radius, self.client_weights))

    def _ball(self, radius: float, n_features: int) -> RobustSpec:
        loss = chosen_loss(self.loss, "classification")
        return self.spec(loss, radius, number("label_flip_cost", self.label_flip_cost), n_features)

    def _train(self, sites: dict[str, SiteProblem], weights: dict[str, float]) -> Training:
        return self.solve(sites, weights)

    def _keep(self, runs: list[Training], names: list[Hashable], n_features: int) -> Self:
        self.client_weights_ = mean_weights(runs, names)
        return super()._keep(runs, names, n_features)
