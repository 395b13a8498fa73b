"""How all estimators state and solve their problem, and what they keep of the answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from models.basics import FloatArray, ProblemError, TransportNorm
from models.centralised.bundle import train_at_hand
from models.conformal.cross import OutOfFold
from models.cuts.certificate import combined_certificate
from models.estimators.choices import (
    SupportArgument,
    check_client_weights,
    chosen_loss,
    mixture_ball,
    stated_support,
)
from models.estimators.lifting import LiftArgument, kind_of, segments_of, spline_of
from models.estimators.scaling import RangeScaling, is_scaled, likely_ends
from models.estimators.sites import Names, site_radii, site_weights
from models.estimators.table import Table
from models.estimators.tuned import tuned
from models.estimators.values import check_word, number, shown, truth, whole_number
from models.features.lift import Lift
from models.losses.base import Loss, Task
from models.methods.catalogue import METHODS
from models.methods.protocol import WORST_CASE
from models.problem import RobustSpec
from models.simulation.federation import Training, train
from models.site_ambiguity.ball import worst_mixture
from models.worst_case.risk import site_risk

AUTO: Final = "auto"
"""The method that solves with all rows at hand."""


@dataclass(frozen=True)
class Statement:
    """What is solved: the names of the sites, the ball and the weight of each, (G,), and the ball over the sites."""

    names: Names
    specs: Sequence[RobustSpec]
    weights: FloatArray
    client_radius: float = 0.0


class RobustFit:
    """Base of the estimators: the problem as their parameters state it, and the fitted attributes."""

    task: ClassVar[Task]
    weights_word: ClassVar[str] = "client_weights"
    loss: str | None = "hinge"
    radius: Any
    client_radius: float = 0.0
    client_norm: Any = "l2"
    transport_norm: TransportNorm
    support: SupportArgument
    fit_intercept: bool
    method: str
    method_parameters: Mapping[str, float] | None
    gap: float
    random_state: Any
    absolute_gap: float | None
    max_rounds: int
    lift: LiftArgument
    lift_size: int
    lift_: Lift | None
    tuning: str | Mapping[str, Any] | None = None
    _held_out: OutOfFold | None = None
    _target_scale: float = 1.0

    def _scaling_of(self, features: FloatArray, counts: FloatArray) -> RangeScaling:
        """By the ranges of features (N, P) where "auto" does what a plan does; else, and of what is given, none.

        ``counts`` (N,) is how often each row does.

        Those that :func:`models.estimators.scaling.is_scaled` takes for scaled ones stay as they are.
        """
        truth("fit_intercept", self.fit_intercept)
        if not self._leaves_the_units() or is_scaled(features):
            return RangeScaling.none(features.shape[1])
        ends = likely_ends(features, counts, classes=self.task == "classification")
        return RangeScaling.of(features, moved=bool(self.fit_intercept), ends=ends)

    def _leaves_the_units(self) -> bool:
        """Whether the units are left to "auto": nothing is stated in those of the rows as given."""
        given = self.support is not None or not (self.lift is None or isinstance(self.lift, str))
        return isinstance(self.tuning, str) and not given

    def _loss(self) -> Loss:
        return chosen_loss("hinge" if self.loss is None else self.loss, self.task)

    def _cost(self) -> float:
        raise NotImplementedError

    def _couples(self, stated: Statement) -> bool:
        """Whether the planes are coupled after their training."""
        return False

    def _merges(self, weighted: bool) -> bool:
        """Whether equal rows are solved as one: where all rows are at hand, and where rows have weights anyhow."""
        return weighted or self.method == AUTO

    def _check_words(self) -> None:
        """Refuse a norm or method that is none, and parameters that are no mapping or of no method, before all else."""
        check_word("transport_norm", self.transport_norm, get_args(TransportNorm))
        check_word("method", self.method, (AUTO, *sorted(METHODS)))
        try:
            check_random_state(self.random_state)
        except ValueError:
            state = shown(self.random_state)
            raise ProblemError(f"random_state must be None, a whole number or a RandomState, got {state}") from None
        given = self.method_parameters
        if given is not None and not isinstance(given, Mapping):
            raise ProblemError(f"method_parameters must be None or a mapping of name to number, got {shown(given)}")
        if self.method == AUTO and given:
            raise ProblemError("method_parameters belong to a method by name; method 'auto' has none")

    def _cut(self, features: FloatArray) -> FloatArray:
        """Features (n, P) cut to ``feature_range_``, as those of the fit were."""
        return np.clip(features, *self.feature_range_)

    def _lifted(self, features: FloatArray) -> FloatArray:
        """Features (n, P) as the planes see them."""
        return features if self.lift_ is None else self.lift_.apply(features)

    def _statement(self, table: Table, names: Names) -> Statement:
        """The problem of rows (N, P) that are not lifted yet: a radius is in their units."""
        rows = np.asarray(np.bincount(table.site, table.counts, len(names)), dtype=np.float64)
        loss, cost = self._loss(), self._cost()
        place = stated_support(self.support, table.features.shape[1], regression=self.task == "regression")
        radii = site_radii(self.radius, names, rows, table.features, cost)
        norm, intercept = self.transport_norm, truth("fit_intercept", self.fit_intercept)
        specs = [RobustSpec(radius, cost / self._target_scale, norm, place, intercept, loss) for radius in radii]
        word = self.weights_word  # one without groups has no such parameter
        shares = site_weights(check_client_weights(getattr(self, word, None), word), names, rows, word)
        return Statement(names, specs, shares, number("client_radius", self.client_radius))

    def _tuned(
        self, table: Table, stated: Statement, heads: FloatArray, rows_by_class: FloatArray | None = None
    ) -> Statement:
        """The statement with the terms that the tuning chose from held-out rows of the heads (K, N); as it is without.

        Keeps ``tuning_curve_``, one entry a candidate: factor on the radius, flip cost, client radius, lift and
        segments of splines (0: none), mean score (macro F-1, or minus the mean error in the target's unit; None: not
        scored), standard error, number of folds; and
        ``tuning_why_``; rounds and the bytes that a site sent as ``tuning_rounds_`` and ``tuning_bytes_per_site_``;
        ``lift_`` is the chosen one.
        """
        if self.tuning is None:
            return stated
        free = self.support is None and (self.lift is None or isinstance(self.lift, str))
        found = tuned(
            self.tuning, table, heads, stated.specs, stated.weights, self.client_norm, stated.client_radius,
            (lambda segments: spline_of(table.features, segments)) if free else None, self.lift_,
            couples=self._couples(stated), rows_by_class=rows_by_class, names=stated.names,
        )
        self.lift_ = found.lift
        self.tuning_why_ = found.why
        self.tuning_rounds_, self.tuning_bytes_per_site_ = found.rounds, found.bytes_per_site
        self.tuning_curve_: list[dict[str, Any]] = [
            {
                "radius": each.candidate.radius,
                "label_flip_cost": each.candidate.label_flip_cost * self._target_scale,
                "client_radius": each.candidate.mixture_radius,
                "lift": kind_of(found.lifts[each.candidate.lift]),
                "segments": segments_of(found.lifts[each.candidate.lift]), "score": each.mean if each.scores else None,
                "standard_error": each.standard_error, "folds": len(each.scores),
            }
            for each in found.curve
        ]
        return Statement(stated.names, found.specs, stated.weights, found.client_radius)

    def _solve(self, table: Table, stated: Statement, labels: FloatArray, gap: float) -> Training:
        """Train one head; what the training says of site risks and mixture is of the true risk over the balls."""
        problems = {str(g): table.problem(g, labels, spec) for g, spec in enumerate(stated.specs)}
        weights = dict(zip(problems, stated.weights.tolist(), strict=True))
        mixture = mixture_ball(self.client_norm, stated.client_radius)
        limit = whole_number("max_rounds", self.max_rounds)
        near = None if self.absolute_gap is None else number("absolute_gap", self.absolute_gap)
        if self.method == AUTO:
            return train_at_hand(
                problems, weights=weights, mixture=mixture, gap=gap, absolute_gap=near, max_rounds=limit
            )
        return train(
            problems, weights=weights, mixture=mixture, method=self.method, parameters=self.method_parameters,
            gap=gap, absolute_gap=near, max_rounds=limit,
        )

    def _keep(self, runs: list[Training], heads: FloatArray, table: Table, stated: Statement) -> None:
        """Fitted attributes from the training of each head (K, N); the risk over the balls is evaluated here.

        Every method is judged alike at the end: what it minimised is its own, the risk over the balls is the problem's.
        """
        names = stated.names
        ball = mixture_ball(self.client_norm, stated.client_radius)
        risks = self._risks(runs, heads, table, stated)
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
        self.bytes_per_site_ = sum(each.bytes_per_site for run in runs for each in run.history)
        far = [run for run in runs if not run.certificate.meets(self.gap, self.absolute_gap)]
        if far and not bounds.meets(self.gap, self.absolute_gap):
            reasons = "; ".join(sorted({run.status.value for run in far}))
            warnings.warn(
                f"the fit is certified to a relative gap of {self.certified_gap_:.3g}, not {self.gap:g} ({reasons})",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _in_own_units(self, scaling: RangeScaling) -> Callable[[FloatArray], FloatArray]:
        """What planes (..., K + 1) of scaled features are of the features as given; lift and folds become so here."""
        lift = self.lift_
        if self._held_out is not None:
            self._held_out = replace(self._held_out, planes=scaling.planes(self._held_out.planes, lift))
        self.lift_, self.feature_scale_, self.feature_range_ = scaling.lift(lift), scaling.width, scaling.ends
        return lambda planes: scaling.planes(planes, lift)

    def _folds(self) -> OutOfFold:
        """What the fit's folds said; ``ProblemError`` of a fit without folds, whatever the parameter says now."""
        if self._held_out is None:
            raise ProblemError("this needs calibration_folds, and the estimator was fitted with 0: fit it anew")
        return self._held_out

    def _risks(self, runs: list[Training], heads: FloatArray, table: Table, stated: Statement) -> FloatArray:
        """Worst-case risk of each head at each site, (K, G)."""
        return np.array([
            [site_risk(run.weights, table.problem(g, labels, spec)).value for g, spec in enumerate(stated.specs)]
            for run, labels in zip(runs, heads, strict=True)
        ])

    def _wanted_gap(self) -> float:
        return number("gap", self.gap)


