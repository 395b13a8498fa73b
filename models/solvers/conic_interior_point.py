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
_FAR, _LEFT = 3.0, 1e-7  # error over the tolerance, and error, down to which steps may be rough
_ROUNDING = 1e-17  # mean complementarity, over the duals' size, that is rounding
_CORRECTORS = 3  # further directions of one factor, where that costs many times a direction
_LONG = 0.9  # step from which on another direction is not worth it
_FURTHER, _GAIN = 0.3, 0.1  # how much longer a step is tried for, and the share of it that must be gained
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

    Wide rows are factored roughly where all digits do not count yet, and a factor serves several directions
    (Gondzio 1996); where a rough one did not end at the tolerance, anew.
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
    correctors = _CORRECTORS if rows.wide_enough else 0
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
        factor = rows.factor(scaling, program.curvature, roughly and idle == 0 and error > max(_FAR * tolerance, _LEFT))
        if factor is None:
            break
        newton = _Newton(rows, scaling, factor, dual_residual, primal_residual, dual)
        _, dslack, ddual = newton.direction()
        step = min(1.0, scaling.longest(slack, dslack, dual, ddual))
        ahead = float((slack + step * dslack) @ (dual + step * ddual)) / degree
        centring = min(1.0, max(ahead, 0.0) / mean) ** 3
        # W ddual as it is: -point - turned in exact arithmetic, but a rough factor leaves a rest, which costs rounds.
        turned = scaling.unscale(dslack)
        wanted = centring * mean * unit - scaling.product(turned, scaling.scale(ddual))
        dx, dslack, ddual = newton.direction(wanted)
        longest = scaling.longest(slack, dslack, dual, ddual)
        for _ in range(correctors):
            if longest >= _LONG:
                break
            ahead = min(1.0, longest + _FURTHER)
            wanted = wanted + scaling.levelling(slack + ahead * dslack, dual + ahead * ddual, centring * mean)
            other = newton.direction(wanted)
            found = scaling.longest(slack, other[1], dual, other[2])
            if found < longest + _GAIN * _FURTHER:
                break
            (dx, dslack, ddual), longest = other, found
        step = min(1.0, _BACK_OFF * longest)
        crawled = crawled + 1 if step < _CRAWLING else 0
        x, slack, dual = x + step * dx, slack + step * dslack, dual + step * ddual
    else:
        status = SolverStatus.STEP_LIMIT
    return replace(best, status=status)


class _Newton:
    """Steps of one iterate: the products that both of its directions need are made once."""

    def __init__(
        self, rows: Rows, scaling: Scaling, factor: Factor, dual_residual: FloatArray, primal_residual: FloatArray,
        dual: FloatArray,
    ) -> None:
        self._rows, self._scaling, self._factor = rows, scaling, factor
        self._dual_residual, self._primal_residual = dual_residual, primal_residual
        # W^-1 (point \ point o point) is W^-1 point, the dual itself.
        self._push = scaling.unscale_twice(primal_residual) - dual

    def direction(self, wanted: FloatArray | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Steps of point, slack and dual towards feasibility and a complementarity of ``wanted``; None: 0."""
        scaling, push = self._scaling, self._push
        if wanted is not None:
            push = push + scaling.unscale(scaling.divide(wanted))
        dx = self._factor.solve(-self._dual_residual - self._rows.adjoint(push))
        moved = self._rows.times(dx)
        return dx, -self._primal_residual - moved, push + scaling.unscale_twice(moved)
