r"""A primal-dual interior point method: separable quadratic objective, linear rows, second-order cones.

    min 1/2 x' diag(curvature) x + <linear, x>   subject to   limits - rows x in R_+^l x Q_1 x .. x Q_k,

``Q = {(t, u) : ||u||_2 <= t}``. Mehrotra's predictor-corrector with Nesterov-Todd scaling from an infeasible start
(Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers"). One product of the rows with themselves
and one Cholesky factor a step; deterministic. The rows of a cut model have a structure (``models.solvers.arrow_rows``);
a matrix of some tens of columns and hundreds of rows goes to ``models.solvers.dense_interior_point``, which takes the
same steps in fewer calls.
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.solvers.arrow_rows import ArrowRows
from models.solvers.cone_program import BACK_OFF, MAX_STEPS, SURFACE, ConeProgram, Progress
from models.solvers.dense_interior_point import solve_dense
from models.solvers.newton_factor import Factor
from models.solvers.second_order_cone import Cones, Scaling
from models.solvers.solution import Solution, SolverStatus

_FAR, _LEFT = 3.0, 1e-7  # error over the tolerance, and error, down to which steps may be rough
_CORRECTORS = 3  # further directions of one factor, where that costs many times a direction
_LONG = 0.9  # step from which on another direction is not worth it
_FURTHER, _GAIN = 0.3, 0.1  # how much longer a step is tried for, and the share of it that must be gained


def solve_cone_program(program: ConeProgram, tolerance: float = 1e-13) -> Solution:
    """Best iterate: at the tolerance, where rounding stopped progress, or at the limit of steps.

    Wide rows are factored roughly where all digits do not count yet, and a factor serves several directions
    (Gondzio 1996); where a rough one did not end at the tolerance, anew.
    """
    if not isinstance(program.rows, ArrowRows):
        return solve_dense(program, tolerance)
    rows = program.rows
    found = _solve(program, rows, tolerance, rows.wide_enough)
    if rows.wide_enough and found.status is not SolverStatus.SOLVED:
        return _solve(program, rows, tolerance, roughly=False)
    return found


def _solve(program: ConeProgram, rows: ArrowRows, tolerance: float, roughly: bool) -> Solution:
    (m, n), limits = rows.shape, program.limits
    cones = Cones.of(m, program.cones)
    degree, unit = cones.degree, cones.unit(m)
    x = np.zeros(n) if program.start is None else program.start
    slack, dual = program.first_iterate(limits - rows.times(x), cones)
    correctors, progress, first, whole = _CORRECTORS if rows.wide_enough else 0, Progress(tolerance), (x, dual), False
    for taken in range(MAX_STEPS):
        dual_residual = program.curvature * x + program.linear + rows.adjoint(dual)
        primal_residual = rows.times(x) + slack - limits
        mean = float(slack @ dual) / degree
        size = 1.0 + float(np.abs(dual).max())
        left = (float(np.abs(primal_residual).max()), float(np.abs(dual_residual).max()), mean * degree)
        error, over = progress.judge(taken, x, dual, left, mean, size)
        if over or min(cones.depth(slack), cones.depth(dual)) <= SURFACE:
            break
        scaling, rough = Scaling.at(slack, dual, cones), roughly and progress.idle == 0
        factor = rows.factor(scaling, program.curvature, rough and error > max(_FAR * tolerance, _LEFT))
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
        step = min(1.0, BACK_OFF * longest)
        progress.moved(step)
        x, slack, dual = x + step * dx, slack + step * dslack, dual + step * ddual
    else:
        whole = True
    return progress.found(*first, whole)


class _Newton:
    """Steps of one iterate: the products that both of its directions need are made once."""

    def __init__(
        self, rows: ArrowRows, scaling: Scaling, factor: Factor, dual_residual: FloatArray, primal_residual: FloatArray,
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
