"""The worst case on a polytope: in closed form where no wall is met, else by the reference solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.norms import dual_norm, steepest_move
from models.geometry.supports import PolytopeSupport
from models.problem import SiteProblem
from models.worst_case.saddle_point import RiskEvaluation
from models.worst_case.unbounded import evaluate_classification, evaluate_regression

_EXACT = 1e-12
"""Distance of the bounds, over the risk, at which they are one number and no program is asked."""


def evaluate_polytope(weights: FloatArray, intercept: float, problem: SiteProblem) -> RiskEvaluation:
    r"""Worst-case risk on a polytope support at a plane ``weights`` (P,), with its cut.

    Without walls the adversary moves rows at the full rate of the loss, whichever they are. Where the rows that gain at
    that rate have room for all of the radius before a wall, the free answer is exact on the polytope too; else it is an
    upper bound, and what fits a distribution of the ball, hence a cut. Only where the two differ the program of
    ``models.reference.polytope`` is solved, and the better of each bound counts. ``ProblemError`` where the program is
    needed and the extra 'reference' is missing; the text says how to install it.
    """
    held = _free_moves(weights, intercept, problem)
    if held.slack <= _EXACT * held.value:
        return held
    try:
        from models.reference.polytope import solve_polytope
    except ModuleNotFoundError as missing:
        if missing.name not in ("cvxpy", "clarabel"):
            raise
        raise ProblemError(
            "the worst case over a polytope support has no fast solver and needs the extra 'reference': "
            "pip install 'ballast-diagnosis[reference]'"
        ) from missing
    found = solve_polytope(weights, intercept, problem)
    if found is None:
        return held
    upper, lower = min(found.upper, held.value), held.value - held.slack
    if found.lower > lower:
        lower, held = found.lower, replace(held, slope=found.slope, intercept_slope=found.intercept_slope, rows=None)
    return replace(held, value=upper, multiplier=found.multiplier, slack=max(upper - lower, 0.0))


def _free_moves(weights: FloatArray, intercept: float, problem: SiteProblem) -> RiskEvaluation:
    """Answer without walls; its slack is what rows that gain at the full rate have no room for before a wall."""
    spec, support, labels, count = problem.spec, problem.spec.support, problem.labels, problem.labels.shape[0]
    if not isinstance(support, PolytopeSupport):
        raise ProblemError("this is for a polytope support")
    steep, scores = spec.loss.lipschitz, problem.features @ weights + intercept
    used, move, wall_cost = problem.features @ support.matrix.T, steepest_move(weights, spec.transport_norm), 1.0
    walls = support.matrix @ move
    if spec.loss.task == "classification":
        free = evaluate_classification(weights, intercept, problem)
        margins, rate, left = labels * scores, dual_norm(weights, spec.transport_norm), free.norm_weight
        flipped = spec.loss.value(-margins) - spec.loss.value(margins) > spec.label_flip_cost * (steep * rate)
        sides = labels * np.where(flipped, -spec.loss.slope(-margins), spec.loss.slope(margins)) / steep
    else:
        free = evaluate_regression(weights, intercept, problem)
        column = np.zeros(support.limits.shape) if support.target_column is None else support.target_column
        used, sides = used + np.outer(labels, column), spec.loss.slope(scores - labels) / steep
        rate, left = dual_norm(weights, spec.transport_norm), spec.radius * steep
        if rate < 1.0 / spec.label_flip_cost:
            rate, move, walls, wall_cost = 1.0 / spec.label_flip_cost, 0.0 * move, -column, spec.label_flip_cost
    clearance = np.maximum(support.limits - used, 0.0)
    ahead = np.where(np.abs(sides) >= 1.0, sides, 0.0)[:, None] * walls
    far = np.divide(clearance, ahead, out=np.full_like(clearance, np.inf), where=ahead > 0).min(axis=1)
    total = float(problem.weigh(np.where(np.isfinite(far), far, 0.0)).sum()) * wall_cost / count
    spent = min(left, steep * total)
    return replace(
        free, slope=free.slope + spent * move, norm_weight=0.0, slack=(left - spent) * rate if left > spent else 0.0
    )
