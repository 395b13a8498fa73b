r"""Exact worst-case risk of a linear model over a Wasserstein ball: value, price, subgradient, cut.

    r(w) = sup { E_Q L : W(Q, empirical) <= radius }

for every loss of ``models.losses``. Which formula answers depends on the loss and on the support:

- hinge, unbounded or on a box: ``models.worst_case.hinge``;
- every other loss, unbounded: ``models.worst_case.unbounded``;
- all classes as one problem (``models.losses.joint``), unbounded: ``models.worst_case.joint_risk``;
- epsilon_insensitive and pinball on a box: ``models.worst_case.box_regression``;
- hinge, epsilon_insensitive and pinball on a polytope: ``models.worst_case.polytope``, by CVXPY where a wall is met.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.basics import FloatArray, ProblemError, TransportNorm
from models.geometry.norms import steepest_move
from models.geometry.supports import PolytopeSupport, Support
from models.losses.base import Loss
from models.losses.catalogue import LossName, get_loss
from models.losses.classification import Hinge
from models.losses.joint import JointLoss
from models.problem import RobustSpec, SiteProblem
from models.validation import as_support, check_rows
from models.worst_case.box_regression import evaluate_box_regression
from models.worst_case.hinge import evaluate_hinge, hinge_rows
from models.worst_case.joint_risk import evaluate_joint
from models.worst_case.polytope import evaluate_polytope
from models.worst_case.saddle_point import RiskEvaluation
from models.worst_case.unbounded import evaluate_classification, evaluate_regression

_ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Share of its terms' sizes by which the rounding of a cut's constant may be off."""


@dataclass(frozen=True)
class RiskValue:
    """Exact worst-case risk at a point: value, a subgradient in the weights, the optimal transport multiplier."""

    value: float
    subgradient: FloatArray
    dual: float


@dataclass(frozen=True)
class WorstCase:
    """Worst-case risk at a plane.

    value : the worst-case risk. subgradient : (P,), in the weights. intercept_subgradient : in the intercept.
    dual : the optimal price of transport (lambda), what a small increase of the radius would add to the risk.
    """

    value: float
    subgradient: FloatArray
    dual: float
    intercept_subgradient: float


def worst_case_risk(
    weights: ArrayLike,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    radius: float,
    label_flip_cost: float,
    transport_norm: TransportNorm,
    support: Support | tuple[ArrayLike, ArrayLike] | None = None,
    intercept: float = 0.0,
    loss: Loss | LossName = "hinge",
) -> WorstCase:
    r"""Exact ``sup { E_Q L(z) : W(Q, empirical) <= radius }``, z the margin or the residual (``models.losses``).

    Parameters
    ----------
    weights : (P,); features : (N, P); labels : (N,) of -1 and +1, or the targets for a regression loss.
    radius : Wasserstein radius, at or above 0, in the units of the features as given.
    label_flip_cost : cost kappa of a label flip, or of moving a target by 1; above 0, ``inf`` forbids it.
    transport_norm : "l1", "l2" or "linf", the norm of a feature move (the weights meet its dual).
    support : None, ``(low, high)`` (scalars or (P,)) for a box that the features cannot leave, or a support object.
    intercept : b; free of transport cost.
    loss : a loss, or the name of one with its default parameter.

    Raises
    ------
    ProblemError
        Where the problem as stated has no meaning; the text says what would be right.
    """
    plane, problem = stated_problem(
        weights, features, labels, radius=radius, label_flip_cost=label_flip_cost, transport_norm=transport_norm,
        support=support, intercept=intercept, loss=loss,
    )
    evaluated = _evaluate(plane, problem)
    slope = _subgradient(evaluated, plane[:-1], problem)
    return WorstCase(evaluated.value, slope, evaluated.multiplier, evaluated.intercept_slope)


def stated_problem(
    weights: ArrayLike, features: ArrayLike, labels: ArrayLike, *, radius: float, label_flip_cost: float,
    transport_norm: TransportNorm, support: Support | tuple[ArrayLike, ArrayLike] | None, intercept: float,
    loss: Loss | LossName = "hinge",
) -> tuple[FloatArray, SiteProblem]:
    """Plane (P + 1,) and checked problem from the arguments of :func:`worst_case_risk`; raises ``ProblemError``."""
    w, x, y = (np.asarray(part, dtype=np.float64) for part in (weights, features, labels))
    if w.ndim != 1 or x.ndim != 2 or w.shape[0] != x.shape[1]:
        raise ProblemError(f"weights must be (P,) and features (N, P), got {w.shape} and {x.shape}")
    if not (np.isfinite(w).all() and np.isfinite(intercept)):
        raise ProblemError("weights and intercept must be finite")
    evaluated_by = get_loss(loss) if isinstance(loss, str) else loss
    place = as_support(support, x.shape[1])
    spec = RobustSpec(float(radius), float(label_flip_cost), transport_norm, place, loss=evaluated_by)
    check_rows(x, y, place, evaluated_by.task)
    return np.append(w, float(intercept)), SiteProblem(x, y, spec)


@dataclass(frozen=True)
class RiskCut:
    r"""What is proven of the worst-case risk at weights w: a value above it there, and a cut below it everywhere.

    ``r(w) <= risk`` and, for every u, ``r(u) >= height + <slope, u - w> + norm_weight (||u||_* - ||w||_*) + <swing,
    |u| - |w|>``, absolute values and the sum over the features. ``height``
    is the risk itself but on a polytope, where a solver with a tolerance is asked: there it is lower by all that the
    solver may be off by. A bound may be built from ``height`` (best by :meth:`offset`), never from ``risk``.

    ``norm_weight`` is what a unit of the norm adds: the part of the radius that is spent on moving without bounds,
    times the loss's Lipschitz constant; 0 on a bounded support. ``swing`` (P,), at or above 0, is what the moves add on
    a box whichever sign the weights have (``models.worst_case.box_transport``); None on every other support.

    ``rows`` (N,), row-level, are the coefficients of the rows in the slope (:class:`RiskEvaluation`): no answer has
    them, the site's account of its answers does; (C - 1, N) of all classes, a vector for each plane. None: not known.
    """

    risk: float
    height: float
    slope: FloatArray
    norm_weight: float
    swing: FloatArray | None = None
    rows: FloatArray | None = None

    def offset(self, weights: FloatArray, norm: float) -> float:
        """Constant c of the cut, ``r(u) >= c + <slope, u> + norm_weight ||u||_* + <swing, |u|>``.

        Far from zero large terms cancel: it is lowered by what their rounding may have raised it. ``norm`` is
        ``||w||_*`` of the weights (D,) that the cut is of.
        """
        paid = self.norm_weight * norm
        if self.swing is not None:
            paid += float(self.swing @ np.abs(weights[: self.swing.shape[0]]))
        size = abs(self.height) + float(np.abs(self.slope) @ np.abs(weights)) + abs(paid)
        return self.height - float(self.slope @ weights) - paid - _ROUNDING * size


def site_cut(weights: FloatArray, problem: SiteProblem) -> RiskCut:
    """Worst-case risk of one site at weights (D,) with its cut, the norm part apart."""
    evaluated = _evaluate(weights, problem)
    slope = _whole(evaluated.slope, evaluated, problem)
    height = evaluated.value - evaluated.slack
    return RiskCut(evaluated.value, height, slope, evaluated.norm_weight, evaluated.swing, evaluated.rows)


def site_risk(weights: FloatArray, problem: SiteProblem) -> RiskValue:
    """Worst-case risk of one site at weights (D,), the intercept last when the problem has one."""
    evaluated = _evaluate(weights, problem)
    gradient = _subgradient(evaluated, weights[: problem.features.shape[1]], problem)
    return RiskValue(evaluated.value, _whole(gradient, evaluated, problem), evaluated.multiplier)


def _evaluate(weights: FloatArray, problem: SiteProblem) -> RiskEvaluation:
    spec, n_features = problem.spec, problem.features.shape[1]
    if isinstance(spec.loss, JointLoss):
        return evaluate_joint(weights, problem)
    wanted = n_features + int(spec.fit_intercept)
    if weights.shape != (wanted,):
        raise ProblemError(f"weights must have shape ({wanted},), got {weights.shape}")
    plane, intercept = weights[:n_features], float(weights[-1]) if spec.fit_intercept else 0.0
    if isinstance(spec.support, PolytopeSupport):
        return evaluate_polytope(plane, intercept, problem)
    if isinstance(spec.loss, Hinge):
        return evaluate_hinge(hinge_rows(plane, intercept, problem))
    if spec.loss.task == "classification":
        return evaluate_classification(plane, intercept, problem)
    if spec.support is not None:
        return evaluate_box_regression(plane, intercept, problem)
    return evaluate_regression(plane, intercept, problem)


def _subgradient(evaluated: RiskEvaluation, weights: FloatArray, problem: SiteProblem) -> FloatArray:
    if evaluated.swing is not None:
        return np.asarray(evaluated.slope + np.sign(weights) * evaluated.swing)
    if evaluated.norm_weight == 0:
        return evaluated.slope
    return np.asarray(evaluated.slope + evaluated.norm_weight * steepest_move(weights, problem.spec.transport_norm))


def _whole(slope: FloatArray, evaluated: RiskEvaluation, problem: SiteProblem) -> FloatArray:
    """Slope (D,) with the intercept's part last; that of all classes has them already."""
    if isinstance(problem.spec.loss, JointLoss) or not problem.spec.fit_intercept:
        return slope
    return np.append(slope, evaluated.intercept_slope)
