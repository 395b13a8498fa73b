"""Validates a client step, states it, and lets the solver that fits it answer."""

from __future__ import annotations

import math

import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.norms import dual_norm, vector_norm
from models.losses.classification import Hinge
from models.problem import SiteProblem
from models.prox.hinge.site_rows import SiteRows
from models.prox.hinge.working_set import Ball, SiteAnswer, solve_site
from models.prox.solution import ProxSolution

_TOLERANCE = 1e-10  # duality gap over the objective
_LARGE = 1e3  # radius from which on it is worth asking whether it crushes all weights
_NOTHING = 1e-16  # radius, over the price of a flip, below which it is 0 to double precision


def robust_prox(
    problem: SiteProblem,
    centre: FloatArray,
    penalty: float,
    *,
    ridge: float = 0.0,
    warm_start: FloatArray | None = None,
) -> ProxSolution:
    r"""Minimise worst-case risk plus a proximal term: the client step of ADMM and the point of a prox cut.

        min_w  r(w) + ridge ||w||^2 + penalty / 2 ||w - centre||^2

    with r the worst-case risk: FDR eq. 9, or with ``ridge`` ADMM-SC's tau the step of its appendix B.3.1. The proximal
    terms cover all D weights, the intercept too; inside r the intercept is left out of the transport norm.

    Parameters
    ----------
    problem : rows and Wasserstein ball of the site, for the hinge loss and features without bounds.
    centre : (D,), prox centre, D = P or P + 1 with the intercept last.
    penalty, ridge : at or above 0, not both 0.
    warm_start : (D,), weights to start from, best the site's own last answer. It changes the time, and the answer only
        within the tolerance: ``gap`` at most 1e-10 of the objective, or what double precision allows.

    Returns
    -------
    ProxSolution
        ``value`` is the objective at ``point`` with all its terms; ``offset + <slope, u> <= r(u)`` for every u,
        touching r at ``point`` (see ``models.prox.hinge.certify`` for the derivation).

    Raises
    ------
    ProblemError
        When an input has no meaning, the loss is not the hinge, or there is a support.
    """
    centre = np.asarray(centre, dtype=float)
    warm_start = None if warm_start is None else np.asarray(warm_start, dtype=float)
    if not isinstance(problem.spec.loss, Hinge):
        raise ProblemError(f"this client step is for the hinge loss, the loss is {problem.spec.loss.name}")
    _check(problem, centre, penalty, ridge, warm_start)
    if problem.spec.support is not None:
        raise ProblemError("this client step is for features without bounds; with a support take models.prox.bundle")
    rows = SiteRows(problem.features, problem.labels, problem.spec.fit_intercept)
    if not rows.are_finite():
        raise ProblemError("features must be finite")
    stiffness = penalty + 2.0 * ridge
    anchor = centre * (penalty / stiffness)
    answer = solve_site(rows, _ball(problem, anchor, stiffness), warm_start, _TOLERANCE)
    # what completing the square left out of the objective
    constant = 0.5 * penalty * float(centre @ centre) - 0.5 * stiffness * float(anchor @ anchor)
    return _solution(answer, rows, problem, anchor, stiffness, constant)


def _ball(problem: SiteProblem, anchor: FloatArray, stiffness: float) -> Ball:
    spec, count = problem.spec, problem.labels.size
    radius, flip = spec.radius, spec.label_flip_cost
    if radius <= _NOTHING * flip:
        # So few flips add less to the objective than its rounding, and so does a radius this small, with which it is
        # the plain support vector machine; leaving them out keeps the minorant below.
        radius, flip = 0.0 if radius <= _NOTHING else radius, math.inf
    if radius > _LARGE:
        radius = min(radius, 2.0 * _crushing_radius(problem, anchor, stiffness))
    return Ball(count * radius, flip, count * stiffness, spec.transport_norm, anchor)


def _crushing_radius(problem: SiteProblem, anchor: FloatArray, stiffness: float) -> float:
    """Radius from which on the feature weights are 0, so that the answer is the same for every larger one.

    At weights 0 the pull of the rows and of the prox term is at most the largest row plus ``stiffness ||anchor||`` in
    the transport norm, and flips take at most their cost off the radius; the norm's dual then holds the weights at 0.
    A smaller radius gives a smaller risk, so its minorant holds for the larger one too.
    """
    features, norm = problem.features, problem.spec.transport_norm
    largest = max(float(features.max()), -float(features.min()))
    rows = float(vector_norm(np.full(features.shape[1], largest), norm))
    pull = stiffness * float(vector_norm(anchor[: features.shape[1]], norm))
    flip = problem.spec.label_flip_cost
    return rows + pull + (flip if math.isfinite(flip) else 0.0)


def _solution(
    answer: SiteAnswer, rows: SiteRows, problem: SiteProblem, anchor: FloatArray, stiffness: float, constant: float
) -> ProxSolution:
    """The answer in the units of the objective, with what proves it."""
    point, bound, count = answer.weights, answer.bound, rows.count
    offset, slope = bound.offset / count, bound.slope / count
    lower = offset + float(slope @ anchor) - float(slope @ slope) / (2.0 * stiffness)
    upper = answer.objective / count
    residual = slope + stiffness * (point - anchor)
    short = 0.0
    if math.isfinite(answer.multiplier):
        short = dual_norm(point[: rows.n_features], problem.spec.transport_norm) - answer.multiplier
    norm_slope = np.zeros_like(point)
    norm_slope[: rows.n_features] = bound.norm_slope / count
    return ProxSolution(
        point=point,
        value=upper + constant,
        offset=offset,
        slope=slope,
        gap=upper - lower,
        primal_residual=max(short, 0.0),
        dual_residual=math.sqrt(float(residual @ residual)),
        iterations=answer.iterations,
        solver=answer.solver,
        norm_weight=bound.norm_weight / count,
        norm_slope=norm_slope,
        passes=rows.passes,
        rows=answer.shares * problem.labels / count,
    )


def _check(
    problem: SiteProblem, centre: FloatArray, penalty: float, ridge: float, warm_start: FloatArray | None
) -> None:
    features, labels = problem.features, problem.labels
    if features.ndim != 2 or features.shape[0] == 0 or features.shape[1] == 0:
        raise ProblemError(f"features must have shape (N, P) with at least one row and column, got {features.shape}")
    if labels.shape != features.shape[:1]:
        raise ProblemError(f"labels must have shape ({features.shape[0]},) like the rows, got {labels.shape}")
    if not (np.abs(labels) == 1.0).all():
        raise ProblemError("labels must be -1 or +1")
    if problem.row_weights is not None:
        raise ProblemError("this client step counts every row once; rows that have weights go to models.prox.bundle")
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
