"""The types in which a robust training problem and its answers are stated."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property
from typing import Final, get_args

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.geometry.supports import PolytopeSupport, Support
from models.losses.base import Loss
from models.losses.classification import Hinge
from models.losses.joint import JointLoss
from models.site_ambiguity.ball import MixtureBall

REACH: Final = 2.0**12
"""Largest absolute weight, in the units of training, of the planes that a lower bound from sums speaks of.

So does one from single answers where these prove none of all planes, up to the next power of two where the best lie
beyond. Risks and features are of order one."""


class Status(Enum):
    """Where a training run stands after a round."""

    CONTINUE = "goes on"
    CERTIFIED = "the certified gap is at or below the wanted one"
    SMALL_RESIDUALS = "the residuals of the method are at or below the wanted ones"
    ROUND_LIMIT = "the round limit was reached before the wanted gap"
    BUDGET_SPENT = "the noise budget is spent; the bounds are those that it reached"
    STALLED = "no further round brings progress"
    CRITICAL = "the convex part is solved to the wanted gap; the whole is not convex, so a better model may exist"


@dataclass(frozen=True)
class RobustSpec:
    r"""A Wasserstein ball around one site's empirical distribution, and the loss that is judged over it.

    Transport cost, radius ``radius``:

    - classification: ``d = ||x - x'|| + label_flip_cost * 1[y != y']`` (FDR eq. 3, DRFL eq. 13);
    - regression: ``d = ||x - x'|| + label_flip_cost * |y - y'|`` (DRFL eq. 12): what it costs to move a target by 1.

    The intercept, when there is one, is the last weight and has infinite transport cost, that is, it is left out of
    every norm.
    """

    radius: float
    label_flip_cost: float
    transport_norm: TransportNorm = "l2"
    support: Support | None = None
    fit_intercept: bool = True
    loss: Loss = Hinge()

    def __post_init__(self) -> None:
        """Refuse a ball that is not one."""
        if not (math.isfinite(self.radius) and self.radius >= 0):
            raise ProblemError(f"radius must be a finite number at or above 0, got {self.radius}")
        if math.isnan(self.label_flip_cost) or self.label_flip_cost <= 0:
            raise ProblemError(f"label_flip_cost must be above 0 (infinity allowed), got {self.label_flip_cost}")
        if self.radius > 0 and not math.isfinite(self.loss.lipschitz):
            like = "logistic" if self.loss.task == "classification" else "huber"
            raise ProblemError(
                f"the {self.loss.name} loss has no worst case over a ball: its radius must be 0, got {self.radius}; "
                f"{like} is a loss like it that has one"
            )
        if self.transport_norm not in get_args(TransportNorm):
            raise ProblemError(f"transport_norm must be one of {get_args(TransportNorm)}, got {self.transport_norm!r}")
        if self.support is not None and self.loss.lines is None:
            raise ProblemError(
                f"the {self.loss.name} loss has a robust risk for unbounded features only; "
                "leave the support out, or take a piecewise linear loss (hinge, epsilon_insensitive, pinball)"
            )
        if isinstance(self.support, PolytopeSupport):
            check_target_column(self.support, self.loss)


def check_target_column(support: PolytopeSupport, loss: Loss) -> None:
    """Refuse a polytope that speaks of targets where there are none, or does not where there are.

    :class:`ProblemError` says which of the two.
    """
    if loss.task == "regression" and support.target_column is None:
        raise ProblemError(
            f"the {loss.name} loss needs a polytope support with a target_column: its walls bound features and target"
        )
    if loss.task == "classification" and support.target_column is not None:
        raise ProblemError(f"the {loss.name} loss has no target: leave target_column out of the polytope support")


@dataclass(frozen=True)
class SiteProblem:
    """What a site half sees. Row-level: never leaves the vault.

    features : (N, P) float64. labels : (N,) of -1.0 and +1.0; for a regression loss the targets (N,), any numbers.
    row_weights : (N,) above 0 with mean 1, how often each row counts: the empirical distribution has the share
    ``row_weights_i / N`` of row i, as if it stood there so many times. None: every row once.
    """

    features: FloatArray
    labels: FloatArray
    spec: RobustSpec
    row_weights: FloatArray | None = None

    @property
    def counts(self) -> FloatArray:
        """How often each row counts, (N,) with mean 1."""
        return np.ones(self.labels.shape[0]) if self.row_weights is None else self.row_weights

    @property
    def dimension(self) -> int:
        """Length D of a weight vector: a plane and its intercept, or as many as a loss of all classes has."""
        planes = self.spec.loss.planes if isinstance(self.spec.loss, JointLoss) else 1
        return planes * (int(self.features.shape[1]) + int(self.spec.fit_intercept))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of which risk it is: rows, labels, row weights and terms, the support's walls among them; kept."""
        support = self.spec.support
        found = hashlib.sha256(repr((replace(self.spec, support=None), type(support).__name__)).encode())
        walls = [] if support is None else [getattr(support, each.name) for each in fields(support) if each.init]
        for part in (self.features, self.labels, self.row_weights, *walls):
            numbers = np.empty(0) if part is None else np.ascontiguousarray(part, dtype=np.float64)
            found.update(repr(numbers.shape).encode() + numbers.tobytes())
        return found.digest()

    def weigh(self, values: FloatArray) -> FloatArray:
        """Values (N,) of the rows, each as often as its row counts: their mean is that of the distribution."""
        return values if self.row_weights is None else values * self.row_weights


@dataclass(frozen=True)
class SiteTerms:
    """What the server knows of one site: scalars only."""

    site_id: str
    weight: float
    radius: float
    label_flip_cost: float


@dataclass(frozen=True)
class ServerProblem:
    """What a server half sees: the sites' scalars and the shape of the model.

    ``gap`` and ``absolute_gap`` say when to stop, see :meth:`Certificate.meets`.
    ``parameters`` are the method's own numbers (``rho``, ``step_size``, ...). ``mixture`` is the ball around the site
    weights whose worst member the risk is: ``F(w) = max_{q in Q} sum_g q_g r_g(w)``. ``feature_scale`` (P,) says in
    what units the weights are: the risks meet ``||feature_scale * w||_*``; None: the units of the features. ``box``:
    the features live in a box, so the sites' cuts have swings (``models.worst_case.risk.RiskCut``). ``reach``: the
    largest absolute weight of which the lower bound speaks; cuts from sums are true up to there alone.
    """

    n_features: int
    sites: tuple[SiteTerms, ...]
    transport_norm: TransportNorm
    fit_intercept: bool
    gap: float = 1e-3
    absolute_gap: float | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    mixture: MixtureBall = MixtureBall()
    feature_scale: FloatArray | None = None
    box: bool = False
    reach: float = math.inf

    def __post_init__(self) -> None:
        """Refuse weights that are not a convex combination and sites that share a name."""
        ids = [site.site_id for site in self.sites]
        if not ids:
            raise ProblemError("a problem needs at least one site")
        if len(set(ids)) != len(ids):
            raise ProblemError("two sites have the same id")
        weights = self.weights
        if not np.isfinite(weights).all() or (weights < 0).any() or abs(weights.sum() - 1.0) > 1e-9:
            raise ProblemError(f"site weights must be at or above 0 and sum to 1, they sum to {weights.sum():.12g}")

    @cached_property
    def weights(self) -> FloatArray:
        """Site weights a_g (G,), which sum to 1."""
        return np.array([site.weight for site in self.sites])

    @property
    def dimension(self) -> int:
        """Length of a weight vector: the features and, last, the intercept when there is one."""
        return self.n_features + int(self.fit_intercept)

    @property
    def n_swings(self) -> int:
        """Length of a cut's swing: the features on a box, else 0."""
        return self.n_features if self.box else 0


_SMALL_RISK = 1e-3
"""Share of the risk of zero weights below which a risk is small, and its relative gap says little."""


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimal worst-case risk after a round.

    ``lower <= optimum <= upper``. ``fresh_weight`` is the share of the site weight that answered in the last round; the
    absent sites enter ``upper`` by their last cuts, so with ``fresh_weight < 1`` the bounds hold for the problem in
    which an absent site's risk is its cut model. ``scale`` says what a large risk is here, since a relative gap cannot
    close where the optimum is 0: the mean of the risks that the sites answered first, at zero weights; 0: not known.
    """

    upper: float
    lower: float
    fresh_weight: float = 1.0
    scale: float = 0.0

    @property
    def gap(self) -> float:
        """Certified relative gap ``(upper - lower) / upper`` (0 where both are 0, infinite before the first bound)."""
        if not (math.isfinite(self.upper) and math.isfinite(self.lower)):
            return math.inf
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    def distance_allowed(self, gap: float, absolute_gap: float | None) -> float:
        """Distance of the bounds, in units of the loss, that is near enough beside a relative ``gap``.

        None: ``gap`` times a thousandth of ``scale``, so that a risk below a thousandth of that of zero weights is
        judged by its distance from the optimum.
        """
        return gap * _SMALL_RISK * self.scale if absolute_gap is None else absolute_gap

    def meets(self, gap: float, absolute_gap: float | None = None) -> bool:
        """Whether the bounds are near enough: by their relative gap, or by their distance."""
        return self.gap <= gap or self.upper - self.lower <= self.distance_allowed(gap, absolute_gap)
