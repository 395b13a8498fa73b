r"""A small dense interior point method: separable quadratic objective, linear rows, second-order cones.

    min 1/2 x' diag(curvature) x + <linear, x>   subject to   limits - rows x in R_+^l x Q_1 x .. x Q_k,

``Q = {(t, u) : ||u||_2 <= t}``. Mehrotra's predictor-corrector with Nesterov-Todd scaling from an infeasible start
(Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers"). One product of the rows with themselves
and one Cholesky factor a step; deterministic. Made for programs of some tens of variables and hundreds of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from models.basics import FloatArray
from models.solvers.second_order_cone import Cones, Scaling, depth
from models.solvers.solution import Solution, SolverStatus

_MAX_STEPS = 60  # several times what a program takes: 10 to 20
_PATIENCE, _NEAR = 3, 1e-7  # steps without progress after which it ends, once the error is so small
_ROUNDING = 1e-17  # mean complementarity, over the duals' size, that is rounding
_SURFACE = 1e-13  # depth in a cone at which its scaling is no longer known
_BACK_OFF = 0.99  # share of the way to the boundary that a step goes
_ROOM = 0.1  # least slack of the start
_SHORT_STEPS = 1e-10  # curvature that is added where the program has none


@dataclass(frozen=True)
class ConeProgram:
    """Data of the program; the last rows belong to second-order cones of the sizes ``cones``, one after the other.

    ``start`` (n,): a point to start from.
    """

    curvature: FloatArray
    linear: FloatArray
    rows: FloatArray
    limits: FloatArray
    cones: tuple[int, ...] = ()
    start: FloatArray | None = None


def solve_cone_program(program: ConeProgram, tolerance: float = 1e-13) -> Solution:
    """Best iterate: at the tolerance, where rounding stopped progress, or at the limit of steps."""
    rows, limits = program.rows, program.limits
    m, n = rows.shape
    cones = Cones.of(m, program.cones)
    split, degree = cones.split, cones.degree
    x = np.zeros(n) if program.start is None else program.start
    unit = cones.unit(m)
    slack, dual = limits - rows @ x, unit.copy()
    np.maximum(slack[:split], _ROOM, out=slack[:split])
    for part in cones.parts:
        if not (slack[part.start] > 0 and depth(slack[part]) > _ROOM):
            slack[part] = unit[part]
    least, idle, status = np.inf, 0, SolverStatus.STEP_LIMIT
    best = Solution(x, dual, status, np.inf, np.inf, np.inf, 0)
    for taken in range(_MAX_STEPS):
        dual_residual = program.curvature * x + program.linear + rows.T @ dual
        primal_residual = rows @ x + slack - limits
        mean = float(slack @ dual) / degree
        size = 1.0 + float(np.abs(dual).max())
        left = (float(np.abs(primal_residual).max()), float(np.abs(dual_residual).max()), mean * degree)
        error = max(left[0], left[1] / size, left[2] / size)
        idle += 1
        if error < least:
            best, least, idle = Solution(x, dual, status, *left, taken), error, 0
        status = SolverStatus.SOLVED if least <= tolerance else SolverStatus.ROUNDING
        if error <= tolerance or not mean > _ROUNDING * size or (idle > _PATIENCE and least < _NEAR):
            break
        if min(cones.depth(slack), cones.depth(dual)) <= _SURFACE:
            break
        scaling = Scaling.at(slack, dual, cones)
        newton = _Newton.at(program, scaling, dual_residual, primal_residual)
        if newton is None:
            break
        square = scaling.product(scaling.point, scaling.point)
        _, dslack, ddual = newton.direction(square)
        step = min(1.0, cones.longest(slack, dslack), cones.longest(dual, ddual))
        ahead = float((slack + step * dslack) @ (dual + step * ddual)) / degree
        centring = min(1.0, max(ahead, 0.0) / mean) ** 3
        second = scaling.product(scaling.unscale(dslack), scaling.scale(ddual))
        dx, dslack, ddual = newton.direction(square + second - centring * mean * unit)
        step = min(1.0, _BACK_OFF * min(cones.longest(slack, dslack), cones.longest(dual, ddual)))
        x, slack, dual = x + step * dx, slack + step * dslack, dual + step * ddual
    else:
        status = SolverStatus.STEP_LIMIT
    return replace(best, status=status)


@dataclass(frozen=True)
class _Newton:
    rows: FloatArray
    scaling: Scaling
    factor: FloatArray
    dual_residual: FloatArray
    primal_residual: FloatArray

    @staticmethod
    def at(
        program: ConeProgram, scaling: Scaling, dual_residual: FloatArray, primal_residual: FloatArray
    ) -> _Newton | None:
        matrix = scaling.gram(program.rows)
        # Keeping the step short where nothing else does leaves the residuals, and so the answer, exact.
        matrix[np.diag_indices(matrix.shape[0])] += np.maximum(program.curvature, _SHORT_STEPS)
        for jitter in (0.0, 1e-14, 1e-11):
            shifted = matrix + np.diag(jitter * matrix.diagonal()) if jitter else matrix
            factor, failed = dpotrf(shifted, lower=True)
            if not failed:
                return _Newton(program.rows, scaling, factor, dual_residual, primal_residual)
        return None

    def direction(self, complementarity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Steps of point, slack and dual towards ``complementarity`` = 0 and feasibility."""
        scaling = self.scaling
        push = scaling.unscale_twice(self.primal_residual) - scaling.unscale(scaling.divide(complementarity))
        dx, _ = dpotrs(self.factor, -self.dual_residual - self.rows.T @ push, lower=True)
        moved = self.rows @ dx
        return dx, -self.primal_residual - moved, push + scaling.unscale_twice(moved)
