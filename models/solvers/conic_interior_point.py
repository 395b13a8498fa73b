r"""A small dense interior point method: separable quadratic objective, linear rows, second-order cones.

    min 1/2 x' diag(curvature) x + <linear, x>   subject to   limits - rows x in R_+^l x Q_1 x .. x Q_k,

``Q = {(t, u) : ||u||_2 <= t}``. Mehrotra's predictor-corrector with Nesterov-Todd scaling from an infeasible start
(Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers"). One product of the rows with themselves
and one Cholesky factor a step; deterministic. Dense rows are for programs of some tens of variables and hundreds of
rows; those of a cut model have a structure (``models.solvers.arrow_rows``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from models.basics import FloatArray
from models.solvers.arrow_rows import ArrowRows, DenseRows, Rows
from models.solvers.newton_factor import Factor
from models.solvers.second_order_cone import Cones, Scaling, depth
from models.solvers.solution import Solution, SolverStatus

_MAX_STEPS = 60  # several times what a program takes: 10 to 20
_PATIENCE, _NEAR = 3, 1e-7  # steps without progress after which it ends, once the error is so small
_CRAWLING, _HOPELESS = 0.02, 5  # so many steps so short one after the other: no point is feasible, but for rounding
_FAR = 100.0  # error over the tolerance down to which steps may be rough
_ROUNDING = 1e-17  # mean complementarity, over the duals' size, that is rounding
_SURFACE = 1e-13  # depth in a cone at which its scaling is no longer known
_BACK_OFF = 0.99  # share of the way to the boundary that a step goes
_DEEP, _NEAR_DEEP = 0.1, 1e-4  # least depth in a cone of a start, and of one with multipliers


@dataclass(frozen=True)
class ConeProgram:
    """Data of the program; the last rows belong to second-order cones of the sizes ``cones``, one after the other.

    ``start`` (n,): a point to start from; ``duals`` (m,): multipliers inside the cones to start from, else those of the
    identity; ``room``: least slack of the start.
    """

    curvature: FloatArray
    linear: FloatArray
    rows: FloatArray | ArrowRows
    limits: FloatArray
    cones: tuple[int, ...] = ()
    start: FloatArray | None = None
    duals: FloatArray | None = None
    room: float = 0.1


def solve_cone_program(program: ConeProgram, tolerance: float = 1e-13) -> Solution:
    """Best iterate: at the tolerance, where rounding stopped progress, or at the limit of steps.

    Wide rows are factored roughly where all digits do not count yet; where that did not end at the tolerance, anew.
    """
    rows = program.rows if isinstance(program.rows, ArrowRows) else DenseRows(program.rows)
    found = _solve(program, rows, tolerance, rows.wide_enough)
    if rows.wide_enough and found.status is not SolverStatus.SOLVED:
        return _solve(program, rows, tolerance, roughly=False)
    return found


def _solve(program: ConeProgram, rows: Rows, tolerance: float, roughly: bool) -> Solution:
    (m, n), limits = rows.shape, program.limits
    cones = Cones.of(m, program.cones)
    split, degree = cones.split, cones.degree
    x = np.zeros(n) if program.start is None else program.start
    unit = cones.unit(m)
    slack, dual = limits - rows.times(x), unit.copy() if program.duals is None else program.duals
    np.maximum(slack[:split], program.room, out=slack[:split])
    deep = _DEEP if program.duals is None else _NEAR_DEEP
    for part in cones.parts:
        if not (slack[part.start] > 0 and depth(slack[part]) > deep):
            slack[part] = unit[part]
    least, idle, crawled, status = np.inf, 0, 0, SolverStatus.STEP_LIMIT
    best = Solution(x, dual, status, np.inf, np.inf, np.inf, 0)
    for taken in range(_MAX_STEPS):
        dual_residual = program.curvature * x + program.linear + rows.adjoint(dual)
        primal_residual = rows.times(x) + slack - limits
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
        if crawled > _HOPELESS:
            break
        if min(cones.depth(slack), cones.depth(dual)) <= _SURFACE:
            break
        scaling = Scaling.at(slack, dual, cones)
        factor = rows.factor(scaling, program.curvature, roughly and idle == 0 and error > _FAR * tolerance)
        if factor is None:
            break
        newton = _Newton(rows, scaling, factor, dual_residual, primal_residual)
        square = scaling.product(scaling.point, scaling.point)
        _, dslack, ddual = newton.direction(square)
        step = min(1.0, cones.longest(slack, dslack), cones.longest(dual, ddual))
        ahead = float((slack + step * dslack) @ (dual + step * ddual)) / degree
        centring = min(1.0, max(ahead, 0.0) / mean) ** 3
        second = scaling.product(scaling.unscale(dslack), scaling.scale(ddual))
        dx, dslack, ddual = newton.direction(square + second - centring * mean * unit)
        step = min(1.0, _BACK_OFF * min(cones.longest(slack, dslack), cones.longest(dual, ddual)))
        crawled = crawled + 1 if step < _CRAWLING else 0
        x, slack, dual = x + step * dx, slack + step * dslack, dual + step * ddual
    else:
        status = SolverStatus.STEP_LIMIT
    return replace(best, status=status)


@dataclass(frozen=True)
class _Newton:
    rows: Rows
    scaling: Scaling
    factor: Factor
    dual_residual: FloatArray
    primal_residual: FloatArray

    def direction(self, complementarity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Steps of point, slack and dual towards ``complementarity`` = 0 and feasibility."""
        scaling = self.scaling
        push = scaling.unscale_twice(self.primal_residual) - scaling.unscale(scaling.divide(complementarity))
        dx = self.factor.solve(-self.dual_residual - self.rows.adjoint(push))
        moved = self.rows.times(dx)
        return dx, -self.primal_residual - moved, push + scaling.unscale_twice(moved)
