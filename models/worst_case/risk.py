r"""Exact worst-case risk of a linear model over a Wasserstein ball: value, price, subgradient, cut.

    r(w) = sup { E_Q L : W(Q, empirical) <= radius }

for every loss of ``models.losses``. Which formula answers depends on the loss and on the support:

- hinge, unbounded or on a box: ``models.hinge_worst_case``;
- every other loss, unbounded: ``models.free_worst_case``;
- epsilon_insensitive and pinball on a box: ``models.box_regression``;
- hinge, epsilon_insensitive and pinball on a polytope: ``models.reference.polytope``, slow, by CVXPY.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from models.ambiguity import as_support, check_rows, steepest_move
from models.box_regression import judge_box_regression
from models.fallback import reference_polytope
from models.free_worst_case import judge_classification, judge_regression
from models.hinge_worst_case import hinge_rows, judge_hinge
from models.losses.base import Loss
from models.losses.catalogue import LossName, get_loss
from models.losses.hinge import Hinge
from models.problem import (
    FloatArray,
    PolytopeSupport,
    ProblemError,
    RiskValue,
    RobustSpec,
    SiteProblem,
    Support,
    TransportNorm,
)
from models.saddle import Judged


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
    )  # fmt: skip
    judged = _judge(plane, problem)
    return WorstCase(judged.value, _subgradient(judged, plane[:-1], problem), judged.price, judged.flat)


def stated_problem(
    weights: ArrayLike,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    radius: float,
    label_flip_cost: float,
    transport_norm: TransportNorm,
    support: Support | tuple[ArrayLike, ArrayLike] | None,
    intercept: float,
    loss: Loss | LossName = "hinge",
) -> tuple[FloatArray, SiteProblem]:
    """Plane (P + 1,) and checked problem from the arguments of :func:`worst_case_risk`; raises ``ProblemError``."""
    w, x, y = (np.asarray(part, dtype=np.float64) for part in (weights, features, labels))
    if w.ndim != 1 or x.ndim != 2 or w.shape[0] != x.shape[1]:
        raise ProblemError(f"weights must be (P,) and features (N, P), got {w.shape} and {x.shape}")
    if not (np.isfinite(w).all() and np.isfinite(intercept)):
        raise ProblemError("weights and intercept must be finite")
    judged_by = get_loss(loss) if isinstance(loss, str) else loss
    place = as_support(support, x.shape[1])
    spec = RobustSpec(float(radius), float(label_flip_cost), transport_norm, place, loss=judged_by)
    check_rows(x, y, place, judged_by.task)
    return np.append(w, float(intercept)), SiteProblem(x, y, spec)


@dataclass(frozen=True)
class RiskCut:
    r"""Worst-case risk at weights and what it proves everywhere.

    ``r(u) >= value - slack + <slope, u - w> + norm_weight (||u||_* - ||w||_*)`` for every u, with equality at w.
    ``norm_weight`` is what a unit of the norm adds: the part of the radius that is spent on moving without bounds,
    times the loss's Lipschitz constant; 0 on a bounded support, where the slope says it all. ``slack`` is 0 but on a
    polytope, whose value is that of a solver with a tolerance.
    """

    value: float
    slope: FloatArray
    norm_weight: float
    slack: float = 0.0


def site_cut(weights: FloatArray, problem: SiteProblem) -> RiskCut:
    """Worst-case risk of one site at weights (D,) with its cut, the norm part apart."""
    judged = _judge(weights, problem)
    return RiskCut(judged.value, _whole(judged.slope, judged, problem), judged.norm_weight, judged.slack)


def site_risk(weights: FloatArray, problem: SiteProblem) -> RiskValue:
    """Worst-case risk of one site at weights (D,), the intercept last when the problem has one."""
    judged = _judge(weights, problem)
    gradient = _subgradient(judged, weights[: problem.features.shape[1]], problem)
    return RiskValue(judged.value, _whole(gradient, judged, problem), judged.price)


def _judge(weights: FloatArray, problem: SiteProblem) -> Judged:
    spec, n_features = problem.spec, problem.features.shape[1]
    wanted = n_features + int(spec.fit_intercept)
    if weights.shape != (wanted,):
        raise ProblemError(f"weights must have shape ({wanted},), got {weights.shape}")
    plane, intercept = weights[:n_features], float(weights[-1]) if spec.fit_intercept else 0.0
    if isinstance(spec.support, PolytopeSupport):
        return _judge_on_polytope(plane, intercept, problem)
    if isinstance(spec.loss, Hinge):
        return judge_hinge(hinge_rows(plane, intercept, problem))
    if spec.loss.task == "classification":
        return judge_classification(plane, intercept, problem)
    if spec.support is not None:
        return judge_box_regression(plane, intercept, problem)
    return judge_regression(plane, intercept, problem)


def _judge_on_polytope(plane: FloatArray, intercept: float, problem: SiteProblem) -> Judged:
    """By the reference solver, but where nothing is moved, whatever the walls: there the free answer is exact."""
    if problem.spec.loss.task == "classification":
        free = judge_classification(plane, intercept, problem)
        if free.norm_weight == 0 or not plane.any():
            return replace(free, norm_weight=0.0)
    elif problem.spec.radius == 0:
        return replace(judge_regression(plane, intercept, problem), norm_weight=0.0)
    return reference_polytope(plane, intercept, problem)


def _subgradient(judged: Judged, weights: FloatArray, problem: SiteProblem) -> FloatArray:
    if judged.norm_weight == 0:
        return judged.slope
    return np.asarray(judged.slope + judged.norm_weight * steepest_move(weights, problem.spec.transport_norm))


def _whole(slope: FloatArray, judged: Judged, problem: SiteProblem) -> FloatArray:
    """Slope (D,) with the intercept's part last."""
    return np.append(slope, judged.flat) if problem.spec.fit_intercept else slope
