"""Validates a prox step, states it, and lets the solver that fits it answer."""

from __future__ import annotations

import math

import numpy as np

from models.problem import FloatArray, ProblemError, ProxSolution, SiteProblem
from models.prox.certify import clip_norm_dual, clip_weights, flip_budget
from models.prox.interior_point import solve_interior_point
from models.prox.statement import Statement, dual_norm_value

_TOLERANCE = 1e-11


def robust_prox(
    problem: SiteProblem, centre: FloatArray, penalty: float, *, ridge: float = 0.0, warm_start: FloatArray | None = None
) -> ProxSolution:
    r"""Minimise worst-case risk plus a proximal term: the client step of ADMM and the point of a prox cut.

        min_w  r(w) + ridge ||w||^2 + penalty / 2 ||w - centre||^2

    with r the worst-case risk of FDR eq. 9. Every norm covers all D weights in the proximal terms, the intercept too;
    inside r the intercept is left out of the transport norm.

    Parameters
    ----------
    problem : SiteProblem
        Rows and Wasserstein ball of the site.
    centre : (D,)
        Prox centre, D = P or P + 1 with the intercept last.
    penalty, ridge : float
        At or above 0, not both 0.
    warm_start : (D,), optional
        Weights to start from, best the last answer. The answer is the same to working precision without it.

    Returns
    -------
    ProxSolution
        ``value`` is the primal objective at ``point`` with all terms; ``offset + <slope, u> <= r(u)`` for every u.

    Raises
    ------
    ProblemError
        When an input has no meaning.
    """
    size = _check(problem, centre, penalty, ridge, warm_start)
    spec = problem.spec
    features, labels = problem.features, problem.labels
    n_rows, n_features = features.shape
    stiffness = penalty + 2.0 * ridge
    anchor = centre * (penalty / stiffness)
    plain = spec.radius == 0.0  # a free multiplier makes flips worthless: the plain support vector machine
    flip_cost = math.inf if plain else spec.label_flip_cost
    stated = Statement(features, labels, np.zeros(size), anchor, n_rows * spec.radius, flip_cost,
                       n_rows * stiffness, spec.transport_norm)
    found = solve_interior_point(stated, anchor if warm_start is None else warm_start, _TOLERANCE)
    keep, flip = clip_weights(found.keep, found.flip, flip_budget(n_rows, spec.radius, flip_cost))
    slope = -stated.pull_back(keep - flip) / n_rows
    flip_mean = float(flip.mean())
    room = max(spec.radius - (flip_cost * flip_mean if flip_mean > 0.0 else 0.0), 0.0)
    norm_slope = np.zeros(size)
    norm_slope[:n_features] = clip_norm_dual(-found.norm_dual / n_rows, room, spec.transport_norm)
    slope += norm_slope
    offset = float((keep + flip).mean())
    multiplier = max(found.multiplier, dual_norm_value(found.weights[:n_features], spec.transport_norm))
    margins = stated.scores(found.weights)
    hinge = np.maximum(1.0 - margins, 0.0)
    risk = 0.0
    if not plain:
        risk = spec.radius * multiplier
        if math.isfinite(flip_cost):
            hinge = np.maximum(hinge, 1.0 + margins - flip_cost * multiplier)
    risk += float(hinge.mean())
    away = found.weights - centre
    value = risk + ridge * float(found.weights @ found.weights) + 0.5 * penalty * float(away @ away)
    # dual objective: the minorant plus the proximal terms, minimised over u
    low = anchor - slope / stiffness
    to_centre = low - centre
    dual = offset + float(slope @ low) + ridge * float(low @ low) + 0.5 * penalty * float(to_centre @ to_centre)
    residual = slope + stiffness * (found.weights - anchor)
    return ProxSolution(found.weights, value, offset, slope, value - dual, 0.0, float(np.sqrt(residual @ residual)),
                        found.iterations, "interior point", room, norm_slope)


def _check(
    problem: SiteProblem, centre: FloatArray, penalty: float, ridge: float, warm_start: FloatArray | None
) -> int:
    features, labels = problem.features, problem.labels
    if features.ndim != 2 or features.shape[0] == 0 or features.shape[1] == 0:
        raise ProblemError(f"features must have shape (N, P) with at least one row and column, got {features.shape}")
    if labels.shape != features.shape[:1]:
        raise ProblemError(f"labels must have shape ({features.shape[0]},) like the rows, got {labels.shape}")
    if not (np.abs(labels) == 1.0).all():
        raise ProblemError("labels must be -1 or +1")
    if not math.isfinite(float(features.sum())):
        raise ProblemError("features must be finite")
    if not (math.isfinite(penalty) and penalty >= 0.0):
        raise ProblemError(f"penalty must be a finite number at or above 0, got {penalty}")
    if not (math.isfinite(ridge) and ridge >= 0.0):
        raise ProblemError(f"ridge must be a finite number at or above 0, got {ridge}")
    if penalty + ridge == 0.0:
        raise ProblemError("penalty and ridge are both 0: the prox step needs one of them above 0")
    size = features.shape[1] + int(problem.spec.fit_intercept)
    for name, vector in (("centre", centre), ("warm_start", warm_start)):
        if vector is not None and vector.shape != (size,):
            raise ProblemError(f"{name} must have length {size}, got shape {vector.shape}")
        if vector is not None and not np.isfinite(vector).all():
            raise ProblemError(f"{name} must be finite")
    return size
