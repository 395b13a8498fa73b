r"""Two references for the client step, straight from its primal statement: a CVXPY model, and a cone program by hand.

The model takes any loss and any support, and needs most of its time to be translated. The cone program is for the hinge
without a support, where a thousand drawn steps want an answer, and is held to the model.
"""

from __future__ import annotations

import clarabel
import cvxpy as cp
import numpy as np
from scipy import sparse

from models.basics import FloatArray
from models.problem import SiteProblem
from tests.oracles.worst_case import minimise, risk_model

TIGHT = {"verbose": False, "max_iter": 400, "tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
SETTINGS_IN_TURN: tuple[dict[str, bool | float], ...] = ({}, {"equilibrate_enable": False}, {"max_step_fraction": 0.9})
"""Near a zero multiplier Clarabel's scaling, or its long last steps, now and then fail."""


def reference_value(problem: SiteProblem, centre: FloatArray, penalty: float, ridge: float = 0.0) -> float:
    """Optimal ``min_w r(w) + ridge ||w||^2 + penalty/2 ||w - centre||^2``, for any support."""
    weights = cp.Variable(centre.size)
    risk, constraints = risk_model(weights, problem)
    away = cp.sum_squares(weights - centre)
    return minimise(risk + ridge * cp.sum_squares(weights) + 0.5 * penalty * away, constraints)


def hinge_value(problem: SiteProblem, centre: FloatArray, penalty: float, ridge: float = 0.0) -> float:
    r"""The same optimum for the hinge without a support, by Clarabel at the same tolerances.

    .. math:: \min \varepsilon \lambda + \frac1N \sum_i s_i + \mathrm{ridge} \|w\|^2 + \frac\rho2 \|w - c\|^2 \quad
        \text{s.t.} \quad s_i \ge 0,\ s_i \ge 1 - m_i,\ s_i \ge 1 + m_i - \kappa \lambda,\ \|w_x\|_* \le \lambda

    with the margins :math:`m = y (X w_x + w_0)`. Variables: ``d = w - c`` (D,), ``lambda``, ``s`` (N,) and, for the
    dual norm l1, bounds ``a`` (P,) on the entries of ``w_x``. Raises ``ArithmeticError`` where Clarabel finds none.
    """
    (n, p), size, spec = problem.features.shape, centre.size, problem.spec
    kappa, bounded = spec.label_flip_cost, spec.transport_norm == "linf"
    # lambda in units in which it is of order one: see `price_variable`
    unit = 1.0 / kappa if spec.radius < kappa < 1.0 else 1.0
    signed = problem.labels[:, None] * np.column_stack([problem.features, np.ones((n, size - p))])
    margins, price, plane = signed @ centre, size, np.eye(p, size)
    slack, bound = slice(size + 1, size + 1 + n), slice(size + 1 + n, None)
    width = size + 1 + n + (p if bounded else 0)
    blocks, limits = [], []

    def at_most(limit: FloatArray, *, d: FloatArray | float = 0.0, s: float = 0.0, lam: float = 0.0, a: float = 0.0):
        rows = np.zeros((limit.size, width))
        rows[:, :size] = d
        if s:
            rows[:, slack] = s * np.eye(n)
        if a:
            rows[:, bound] = a * np.eye(p)
        rows[:, price] = lam * unit
        blocks.append(rows)
        limits.append(limit)

    at_most(np.zeros(n), s=-1.0)
    at_most(margins - 1.0, d=-signed, s=-1.0)
    if np.isfinite(kappa):
        at_most(-1.0 - margins, d=signed, s=-1.0, lam=-kappa)
    if spec.transport_norm != "l2":
        for sign in (1.0, -1.0):
            at_most(-sign * centre[:p], d=sign * plane, a=-1.0 if bounded else 0.0, lam=0.0 if bounded else -1.0)
    if bounded:
        at_most(np.zeros(1), lam=-1.0)
        blocks[-1][:, bound] = 1.0
    cones = [clarabel.NonnegativeConeT(sum(map(len, limits)))]
    if spec.transport_norm == "l2":
        at_most(np.zeros(1), lam=-1.0)
        at_most(centre[:p], d=-plane)
        cones.append(clarabel.SecondOrderConeT(p + 1))

    curvature, linear = np.zeros(width), np.zeros(width)
    curvature[:size], linear[:size] = 2.0 * ridge + penalty, 2.0 * ridge * centre
    linear[price], linear[slack] = spec.radius * unit, problem.counts / problem.counts.sum()
    squares, rows = sparse.diags_array(curvature, format="csc"), sparse.csc_array(np.vstack(blocks))
    almost = None
    for more in SETTINGS_IN_TURN:
        settings = clarabel.DefaultSettings()
        for name, value in (TIGHT | more).items():
            setattr(settings, name, value)
        found = clarabel.DefaultSolver(squares, linear, rows, np.concatenate(limits), cones, settings).solve()
        value = float(found.obj_val) + ridge * float(centre @ centre)
        if found.status == clarabel.SolverStatus.Solved:
            return value
        if found.status == clarabel.SolverStatus.AlmostSolved and almost is None:
            almost = value
    if almost is None:
        raise ArithmeticError(f"Clarabel found no answer: {found.status}")
    return almost
