"""How all estimators state and solve their problem, and what they keep of the answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from models.basics import FloatArray, ProblemError, TransportNorm
from models.centralised.bundle import train_at_hand
from models.cuts.certificate import combined_certificate
from models.estimators.choices import SupportArgument, chosen_loss, mixture_ball, stated_support
from models.estimators.sites import Names, number, site_radii, site_weights, whole_number
from models.estimators.table import Table
from models.losses.base import Loss, Task
from models.methods.catalogue import METHODS
from models.methods.protocol import WORST_CASE
from models.problem import RobustSpec
from models.simulation.federation import Training, train
from models.site_ambiguity.ball import worst_mixture
from models.worst_case.risk import site_risk


@dataclass(frozen=True)
class Statement:
    """What is solved: the names of the sites, the ball and the weight of each, (G,)."""

    names: Names
    specs: Sequence[RobustSpec]
    weights: FloatArray


class RobustFit:
    """Base of the estimators: the problem as their parameters state it, and the fitted attributes."""

    task: ClassVar[Task]
    loss: str = "hinge"
    radius: Any
    client_radius: float = 0.0
    client_norm: Any = "l2"
    transport_norm: TransportNorm
    support: SupportArgument
    fit_intercept: bool
    method: str
    method_parameters: Mapping[str, float] | None
    gap: float
    absolute_gap: float | None
    max_rounds: int

    def _loss(self) -> Loss:
        return chosen_loss(self.loss, self.task)

    def _cost(self) -> float:
        raise NotImplementedError

    def _client_weights(self) -> str | Mapping[Any, float] | None:
        return None

    def _merges(self, weighted: bool) -> bool:
        """Whether equal rows are solved as one: where all rows are at hand, and where rows have weights anyhow."""
        return weighted or self.method == "auto"

    def _statement(self, table: Table, names: Names) -> Statement:
        rows = np.asarray(np.bincount(table.site, table.counts, len(names)), dtype=np.float64)
        loss, cost = self._loss(), self._cost()
        place = stated_support(self.support, table.features.shape[1], regression=self.task == "regression")
        radii = site_radii(self.radius, names, rows, table.features, cost)
        norm, intercept = self.transport_norm, bool(self.fit_intercept)
        specs = [RobustSpec(radius, cost, norm, place, intercept, loss) for radius in radii]
        return Statement(names, specs, site_weights(self._client_weights(), names, rows))

    def _solve(self, table: Table, stated: Statement, labels: FloatArray, gap: float) -> Training:
        """Train one head; what the training says of site risks and mixture is of the true risk over the balls."""
        problems = {str(g): table.problem(g, labels, spec) for g, spec in enumerate(stated.specs)}
        weights = dict(zip(problems, stated.weights.tolist(), strict=True))
        mixture, limit = mixture_ball(self.client_norm, self.client_radius), whole_number("max_rounds", self.max_rounds)
        near = None if self.absolute_gap is None else number("absolute_gap", self.absolute_gap)
        if self.method == "auto":
            if self.method_parameters:
                raise ProblemError("method_parameters belong to a method by name; method 'auto' has none")
            return train_at_hand(
                problems, weights=weights, mixture=mixture, gap=gap, absolute_gap=near, max_rounds=limit
            )
        if self.method not in METHODS:
            raise ProblemError(f"method must be 'auto' or one of {', '.join(sorted(METHODS))}, got {self.method!r}")
        return train(
            problems, weights=weights, mixture=mixture, method=self.method, parameters=self.method_parameters,
            gap=gap, absolute_gap=near, max_rounds=limit,
        )

    def _keep(self, runs: list[Training], heads: FloatArray, table: Table, stated: Statement) -> None:
        """Fitted attributes from the training of each head (K, N); the risk over the balls is evaluated here.

        Every method is judged alike at the end: what it minimised is its own, the risk over the balls is the problem's.
        """
        names = stated.names
        ball = mixture_ball(self.client_norm, self.client_radius)
        risks = np.array([
            [site_risk(run.weights, table.problem(g, labels, spec)).value for g, spec in enumerate(stated.specs)]
            for run, labels in zip(runs, heads, strict=True)
        ])
        worst = [worst_mixture(each, stated.weights, ball) for each in risks]
        bounds = combined_certificate([run.certificate for run in runs])
        self.worst_case_risk_ = float(sum(each.value for each in worst))
        self.site_risks_ = dict(zip(names, risks.sum(axis=0).tolist(), strict=True))
        self.client_weights_ = dict(zip(names, np.mean([each.weights for each in worst], axis=0).tolist(), strict=True))
        self.radius_ = {name: spec.radius for name, spec in zip(names, stated.specs, strict=True)}
        self.objective_name_ = METHODS[self.method].objective if self.method in METHODS else WORST_CASE
        self.objective_, self.objective_lower_bound_ = float(bounds.upper), float(bounds.lower)
        self.certified_gap_ = float(bounds.gap)
        self.n_rounds_ = max(run.n_rounds for run in runs)
        far = [run for run in runs if not run.certificate.meets(self.gap, self.absolute_gap)]
        if far and not bounds.meets(self.gap, self.absolute_gap):
            reasons = "; ".join(sorted({run.status.value for run in far}))
            warnings.warn(
                f"the fit is certified to a relative gap of {self.certified_gap_:.3g}, not {self.gap:g} ({reasons})",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _wanted_gap(self) -> float:
        return number("gap", self.gap)


