r"""CVXPY models of the client step: the oracle of the tests, and the solver for a box support.

For a box the dual is solved, because its variables are a distribution: row i keeps its label with weight a_i and has
it flipped with weight b_i, and these parts move by ``q_i / a_i`` and ``p_i / b_i`` inside the box at a cost within the
radius (the atoms of DRFL Propositions 6.3 and 6.4). The expected hinge loss of any such distribution is at least

    mean(a + b) + <slope, u>,    slope = mean_i y_i (b_i x_i + p_i - a_i x_i - q_i)

(``mean_i y_i (b_i - a_i)`` in the intercept), and at most the worst-case risk r(u): a minorant of r for every u,
whatever the solver's tolerance, once the distribution is brought into its set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from models.problem import BoxSupport, FloatArray, ProblemError, ProxSolution, SiteProblem, TransportNorm
from models.reference.solve import CVXPY_NORM, minimise, solve_tightly
from models.reference.worst_case import risk_model
from models.worst_case import site_risk

_ROW_NORM: dict[TransportNorm, float] = {"l1": 1, "l2": 2, "linf": np.inf}


def reference_value(problem: SiteProblem, centre: FloatArray, penalty: float, ridge: float = 0.0) -> float:
    """Optimal objective of the client step, straight from its primal statement, for any support."""
    weights = cp.Variable(centre.size)
    risk, constraints = risk_model(weights, problem)
    away = cp.sum_squares(weights - centre)
    return minimise(risk + ridge * cp.sum_squares(weights) + 0.5 * penalty * away, constraints)


@dataclass(frozen=True)
class _Moved:
    """Distribution over the rows: weights kept and flipped (n,), and their moves times their weights (n, P)."""

    keep: FloatArray
    flip: FloatArray
    keep_move: FloatArray
    flip_move: FloatArray


def solve_prox(problem: SiteProblem, centre: FloatArray, penalty: float, ridge: float) -> ProxSolution:
    """Client step over a box support (see :func:`models.prox.robust_prox`)."""
    stiffness = penalty + 2.0 * ridge
    anchor = centre * (penalty / stiffness)
    moved, iterations = _solve_dual(problem, anchor, stiffness)
    moved = _bring_inside(problem, moved)
    count = problem.labels.size
    difference = moved.flip - moved.keep
    signed = problem.labels * difference
    slope = (signed @ problem.features + problem.labels @ (moved.flip_move - moved.keep_move)) / count
    if problem.spec.fit_intercept:
        slope = np.append(slope, signed.mean())
    offset = float((moved.keep + moved.flip).mean())
    point = anchor - slope / stiffness
    away, lift = point - centre, 0.5 * penalty * float(centre @ centre) - 0.5 * stiffness * float(anchor @ anchor)
    value = site_risk(point, problem).value + ridge * float(point @ point) + 0.5 * penalty * float(away @ away)
    lower = offset + float(slope @ anchor) - float(slope @ slope) / (2.0 * stiffness) + lift
    return ProxSolution(
        point=point,
        value=value,
        offset=offset,
        slope=slope,
        gap=value - lower,
        primal_residual=0.0,
        dual_residual=0.0,
        iterations=iterations,
        solver="reference: CVXPY and Clarabel",
    )


def _solve_dual(problem: SiteProblem, anchor: FloatArray, stiffness: float) -> tuple[_Moved, int]:
    """Worst distribution for the best weights."""
    x, y, spec = problem.features, problem.labels, problem.spec
    if not isinstance(spec.support, BoxSupport):
        raise ProblemError("the reference step here is for a box support")
    low, high = spec.support.low - x, spec.support.high - x
    count, n_features = x.shape
    flips = math.isfinite(spec.label_flip_cost)
    keep, flip = cp.Variable(count, nonneg=True), cp.Variable(count, nonneg=True)
    keep_move, flip_move = cp.Variable(x.shape), cp.Variable(x.shape)
    norm = CVXPY_NORM[spec.transport_norm]
    cost = cp.sum(cp.norm(keep_move, norm, axis=1))
    constraints = [keep + flip <= 1, *_within(keep, keep_move, low, high)]
    if flips:
        cost += cp.sum(cp.norm(flip_move, norm, axis=1)) + spec.label_flip_cost * cp.sum(flip)
        constraints += _within(flip, flip_move, low, high)
    else:
        constraints += [flip == 0, flip_move == 0]
    constraints.append(cost <= count * spec.radius)
    signed = cp.multiply(y, flip - keep)
    slope = (x.T @ signed + (flip_move - keep_move).T @ y) / count
    if spec.fit_intercept:
        slope = cp.hstack([slope, cp.sum(signed) / count])
    objective = cp.sum(keep + flip) / count + anchor @ slope - cp.sum_squares(slope) / (2.0 * stiffness)
    program = cp.Problem(cp.Maximize(objective), constraints)
    solve_tightly(program)  # how accurate it is, the gap of the answer says
    moved = _Moved(*(np.asarray(part.value, dtype=float) for part in (keep, flip, keep_move, flip_move)))
    return moved, int(program.solver_stats.num_iters)


def _within(weight: cp.Variable, move: cp.Variable, low: FloatArray, high: FloatArray) -> list[cp.Constraint]:
    """Moves, times their weights, that stay in the box."""
    spread = cp.reshape(weight, (low.shape[0], 1), order="C")
    return [cp.multiply(spread, low) <= move, move <= cp.multiply(spread, high)]


def _bring_inside(problem: SiteProblem, moved: _Moved) -> _Moved:
    """The distribution clipped to its set: what makes the minorant hold."""
    x, spec = problem.features, problem.spec
    if not isinstance(spec.support, BoxSupport):
        raise ProblemError("the reference step here is for a box support")
    # A feature that sticks out by rounding may stay where it is.
    low, high = np.minimum(spec.support.low - x, 0.0), np.maximum(spec.support.high - x, 0.0)
    keep, flip = np.maximum(moved.keep, 0.0), np.maximum(moved.flip, 0.0)
    total = np.maximum(keep + flip, 1.0)
    keep, flip = keep / total, flip / total
    keep_move = np.clip(moved.keep_move, keep[:, None] * low, keep[:, None] * high)
    flip_move = np.clip(moved.flip_move, flip[:, None] * low, flip[:, None] * high)
    norm = _ROW_NORM[spec.transport_norm]
    cost = np.linalg.norm(keep_move, norm, axis=1).sum() + np.linalg.norm(flip_move, norm, axis=1).sum()
    if math.isfinite(spec.label_flip_cost):
        cost += spec.label_flip_cost * flip.sum()
    else:
        flip, flip_move = np.zeros_like(flip), np.zeros_like(flip_move)
    allowed = x.shape[0] * spec.radius
    share = min(1.0, allowed / cost) if cost > 0.0 else 1.0
    return _Moved(keep, share * flip, share * keep_move, share * flip_move)
