"""The client step in the general solvers that the benchmark sets beside ours, each built once and then moved.

All state the same program in variables (w, b, lam, s and, for the dual norm l1, bounds t):

    min N radius lam + sum s + N penalty/2 ||(w, b)||^2 - N penalty <centre, (w, b)>
    s >= 0, s >= 1 - m, s >= 1 + m - kappa lam, lam >= ||w||_*

so that only the linear term changes from round to round. Sums instead of means, because Clarabel gives up on some of
these problems with costs of 1 / N. Tolerances are the solvers' own.
"""

from __future__ import annotations

from collections.abc import Callable

import clarabel
import cvxpy as cp
import numpy as np
import piqp
import scipy.sparse as sp

from models.basics import FloatArray
from models.problem import SiteProblem

Step = Callable[[FloatArray], float]
"""Objective, as a mean and without the constant of the proximal term, for a centre (D,); NaN where it gave up."""

_DUAL_NORM = {"l1": "inf", "l2": 2, "linf": 1}


def cvxpy_step(problem: SiteProblem, penalty: float) -> Step:
    """Parametrised model by the rules of disciplined parametrised programming, compiled once, solved by Clarabel."""
    spec, (n, p) = problem.spec, problem.features.shape
    weights, intercept = cp.Variable(p), cp.Variable()
    lam, slack = cp.Variable(), cp.Variable(n, nonneg=True)
    pull = cp.Parameter(p + 1)
    margins = cp.multiply(problem.labels, problem.features @ weights + intercept)
    constraints = [
        slack >= 1 - margins,
        slack >= 1 + margins - spec.label_flip_cost * lam,
        cp.norm(weights, _DUAL_NORM[spec.transport_norm]) <= lam,
    ]
    square = cp.sum_squares(weights) + cp.square(intercept)
    linear = pull[:p] @ weights + pull[p] * intercept
    cost = n * spec.radius * lam + cp.sum(slack) + 0.5 * n * penalty * square - linear
    program = cp.Problem(cp.Minimize(cost), constraints)

    def step(centre: FloatArray) -> float:
        pull.value = n * penalty * centre
        try:
            return float(program.solve(solver=cp.CLARABEL)) / n
        except cp.SolverError:
            return np.nan

    return step


def _rows(problem: SiteProblem) -> tuple[sp.csc_matrix, FloatArray, int]:
    """``rows x <= limits`` for the losses and, where it is linear, the norm; and the number of variables."""
    spec, (n, p) = problem.spec, problem.features.shape
    signed = np.column_stack((problem.features * problem.labels[:, None], problem.labels))
    extra = p if spec.transport_norm == "linf" else 0
    empty, minus = sp.csc_matrix((n, 1)), -sp.identity(n, format="csc")
    kept = sp.hstack((-signed, empty, minus, sp.csc_matrix((n, extra))))
    flipped = sp.hstack((signed, np.full((n, 1), -spec.label_flip_cost), minus, sp.csc_matrix((n, extra))))
    zero = sp.hstack((sp.csc_matrix((n, p + 2)), minus, sp.csc_matrix((n, extra))))
    blocks, limits = [kept, flipped, zero], [np.full(2 * n, -1.0), np.zeros(n)]
    one, gap = sp.identity(p, format="csc"), sp.csc_matrix((p, 1))
    for sign in (1.0, -1.0):
        if spec.transport_norm == "linf":
            blocks.append(sp.hstack((sign * one, gap, gap, sp.csc_matrix((p, n)), -one)))
            limits.append(np.zeros(p))
        elif spec.transport_norm == "l1":
            blocks.append(sp.hstack((sign * one, gap, -np.ones((p, 1)), sp.csc_matrix((p, n)))))
            limits.append(np.zeros(p))
    if spec.transport_norm == "linf":
        blocks.append(sp.hstack((sp.csc_matrix((1, p + 1)), [[-1.0]], sp.csc_matrix((1, n)), np.ones((1, p)))))
        limits.append(np.zeros(1))
    return sp.vstack(blocks, format="csc"), np.concatenate(limits), p + 2 + n + extra


def _costs(problem: SiteProblem, penalty: float, size: int) -> tuple[sp.csc_matrix, FloatArray]:
    n, p = problem.features.shape
    curvature = np.zeros(size)
    curvature[: p + 1] = n * penalty
    linear = np.zeros(size)
    linear[p + 1] = n * problem.spec.radius
    linear[p + 2 : p + 2 + n] = 1.0
    return sp.diags(curvature, format="csc"), linear


def clarabel_step(problem: SiteProblem, penalty: float) -> Step:
    """Clarabel called directly; a round updates the linear term in place."""
    rows, limits, size = _rows(problem)
    n, p = problem.features.shape
    quadratic, linear = _costs(problem, penalty, size)
    cones = [clarabel.NonnegativeConeT(rows.shape[0])]
    if problem.spec.transport_norm == "l2":
        # slack of these rows is (lam, w)
        norm = sp.csc_matrix((-np.ones(p + 1), (np.arange(p + 1), np.r_[p + 1, :p])), shape=(p + 1, size))
        rows, limits = sp.vstack((rows, norm), format="csc"), np.append(limits, np.zeros(p + 1))
        cones.append(clarabel.SecondOrderConeT(p + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.presolve_enable = False
    settings.max_threads = 1
    solver = clarabel.DefaultSolver(sp.triu(quadratic, format="csc"), linear, rows, limits, cones, settings)

    def step(centre: FloatArray) -> float:
        linear[: p + 1] = -n * penalty * centre
        solver.update(q=linear)
        solution = solver.solve()
        return float(solution.obj_val) / n if str(solution.status) == "Solved" else np.nan

    return step


def piqp_step(problem: SiteProblem, penalty: float) -> Step | None:
    """PIQP, warm in its factorisation's structure; None where the norm is not linear."""
    if problem.spec.transport_norm == "l2":
        return None
    rows, limits, size = _rows(problem)
    n, p = problem.features.shape
    quadratic, linear = _costs(problem, penalty, size)
    solver = piqp.SparseSolver()
    solver.settings.verbose = False
    solver.setup(quadratic, linear, None, None, rows, None, limits)

    def step(centre: FloatArray) -> float:
        linear[: p + 1] = -n * penalty * centre
        solver.update(c=linear)
        solved = solver.solve() == piqp.PIQP_SOLVED
        return float(solver.result.info.primal_obj) / n if solved else np.nan

    return step
