r"""Small cone programs by active sets: quadratic programs with the cones' tangents, checked on the program itself.

    min 1/2 x' diag(curvature) x + <linear, x>   subject to   limits - rows x in R_+^l x Q_1 x .. x Q_k

(``models.solvers.conic_interior_point``). A cone ``||u|| <= t`` becomes the rows ``<d, u> <= t`` of the directions
d = u / ||u|| at the points so far, which all hold, and ``t >= 0``. Next come the steps of sequential quadratic
programming (Nocedal and Wright 2006, chapter 18): each solves, for the step dx, the program with these rows and with
the Hessian of the Lagrangian, to which a cone with the multiplier y adds ``y / ||u|| U' (I - d d') U``, U its rows.

The quadratic programs go to DAQP (Arnstrom, Bemporad, Axehill 2022, "A dual active-set solver for embedded quadratic
programming using recursive LDL' updates"), a compiled dual active set method: where an interior point takes some
twenty steps of two hundred microseconds, all of it calls, this takes some fifty exchanges of rows in three hundred
microseconds. With a linear objective the Hessian is that of the cones alone, and of few columns that is enough: three
steps near the end of a run, ten at its beginning. It may be missing, and it may fail where many rows tie. So nothing is
taken from it on trust: a solution is one that meets all conditions of optimality of the cone program to the tolerance,
and without one there is None.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.solvers.cone_program import ConeProgram
from models.solvers.second_order_cone import Cones
from models.solvers.solution import Solution, SolverStatus

try:
    import daqp
except ImportError:  # a plant does without
    daqp = None

_ROUNDS, _ROUNDS_LINEAR, _EXCHANGES, _MORE = 8, 12, 300, 100
"""Quadratic programs for one cone program, for one with a linear objective, and exchanges of rows in the first and in a
later one: several times what they take."""
FEW_COLUMNS = 12
"""Columns up to which a cone may hold up a linear objective: of more the first tangents lead too far away."""
_LINEAR_TOLERANCE = 1e-11
"""Tolerance of these, which the last of their steps meets at no price."""
_PROXIMAL, _PROXIMAL_LINEAR = -1.0, -1e-4
"""Curvature of the proximal steps with which columns without one are met; a linear objective wants long steps."""
_FEASIBLE, _POSITIVE = 1e-11, 1e-12
"""By how much a row may be missed, and the multiplier that is one."""
_ACCURACY, _SHARPER = 1e-6, 0.1
"""Accuracy of a quadratic program's multipliers at first, and then over that of the cone program where they miss it."""
_NEAR = 1e-6
"""Miss of a cone from which its last tangent is enough: multipliers shared among several would not settle."""
_NO_LIMIT = -1e30  # what the solver takes for no lower limit
_SOLVED = 1  # the solver's flag


def solve_by_active_sets(program: ConeProgram, tolerance: float) -> Solution | None:
    """Solution at the tolerance, or None: there is no DAQP, it failed, or a linear objective of many columns has cones.

    ``program.rows`` is a matrix. Deterministic. ``iterations`` counts the quadratic programs.

    With a linear objective the tangents are far apart in the first steps, and of more than some columns an interior
    point is the quicker way. Of few the solution is to all digits, whatever the tolerance.
    """
    if daqp is None or not isinstance(program.rows, np.ndarray) or program.start is None:
        return None
    curved, linear = bool(program.curvature.any()), False
    if program.cones and not curved:
        if program.start.size > FEW_COLUMNS:
            return None
        linear, tolerance = True, min(tolerance, _LINEAR_TOLERANCE)
    rows, limits, point = program.rows, program.limits, program.start
    cones = Cones.of(rows.shape[0], program.cones)
    heads = rows[[part.start for part in cones.parts]]
    plain = _Tangents(np.vstack([rows[: cones.split], heads]), [(c, None) for c in range(len(cones.parts))])
    tangents = plain
    bent, duals = np.zeros((point.size, point.size)), np.zeros(0)
    accuracy = _SHARPER * tolerance if linear else _ACCURACY  # proximal steps that end early hold the point back
    for taken in range(1, (_ROUNDS_LINEAR if linear else _ROUNDS) + 1):
        slack = limits - rows @ point
        tangents = tangents.at(slack, rows, cones)
        held = np.zeros(tangents.rows.shape[0], dtype=np.intc)
        held[: duals.size] = duals > 0
        step, duals = _quadratic(
            np.diag(program.curvature) + bent, program.curvature * point + program.linear, tangents.rows,
            tangents.slacks(slack, cones), held, _EXCHANGES if taken == 1 else _MORE,
            _PROXIMAL if curved else _PROXIMAL_LINEAR, accuracy,
        )
        if duals.size == 0:
            return None
        point = point + step
        found = _judged(program, rows, cones, point, tangents.of_cones(duals, cones), taken)
        if max(found.primal_residual, found.dual_residual, found.gap) <= tolerance:
            return found
        if found.primal_residual <= tolerance:
            accuracy = _SHARPER * tolerance
        if found.primal_residual <= _NEAR:
            tangents, duals = plain, duals[: plain.rows.shape[0]]
        bent = _bent(found.multipliers, limits - rows @ point, rows, cones)
    return None


@dataclass(frozen=True)
class _Tangents:
    """Rows (r, n) of the linear part, then of tangents: cone and direction of each, None where it is ``t >= 0``."""

    rows: FloatArray
    of: list[tuple[int, FloatArray | None]]

    def at(self, slack: FloatArray, rows: FloatArray, cones: Cones) -> _Tangents:
        """With the tangent of each cone at a slack (m,)."""
        added, of = [self.rows], list(self.of)
        for c, part in enumerate(cones.parts):
            size = float(np.sqrt(slack[part][1:] @ slack[part][1:]))
            if size > 0:
                direction = slack[part][1:] / size
                added.append((rows[part.start] - direction @ rows[part.start + 1 : part.stop])[None])
                of.append((c, direction))
        return _Tangents(np.vstack(added), of)

    def slacks(self, slack: FloatArray, cones: Cones) -> FloatArray:
        """Slack (r,) of every row from that of the program's (m,)."""
        tails = []
        for c, direction in self.of:
            part = cones.parts[c]
            tails.append(slack[part.start] - (0.0 if direction is None else direction @ slack[part][1:]))
        return np.append(slack[: cones.split], tails)

    def of_cones(self, duals: FloatArray, cones: Cones) -> FloatArray:
        """Multipliers (m,) of the program from those of the rows (r,): sums of ``y (1, -direction)`` in each cone."""
        found = np.zeros(cones.split + sum(part.stop - part.start for part in cones.parts))
        found[: cones.split] = duals[: cones.split]
        for (c, direction), dual in zip(self.of, duals[cones.split :], strict=True):
            part = cones.parts[c]
            found[part.start] += dual
            if direction is not None:
                found[part.start + 1 : part.stop] -= dual * direction
        return found


def _quadratic(
    hessian: FloatArray, slope: FloatArray, rows: FloatArray, limits: FloatArray, held: NDArray[np.intc],
    exchanges: int, proximal: float, accuracy: float,
) -> tuple[FloatArray, FloatArray]:
    """Step (n,) and multipliers (r,) of a quadratic program; none of these where it was not solved."""
    if not (np.isfinite(limits).all() and np.isfinite(slope).all() and np.isfinite(hessian).all()):
        return slope, np.zeros(0)
    step, _, flag, told = daqp.solve(
        hessian, slope, rows, limits, np.full(limits.size, _NO_LIMIT), held, eps_prox=proximal, eta_prox=accuracy,
        primal_tol=_FEASIBLE, dual_tol=_POSITIVE, iter_limit=exchanges,
    )
    if flag != _SOLVED:
        return slope, np.zeros(0)
    return np.asarray(step), np.maximum(told["lam"], 0.0)


def _judged(
    program: ConeProgram, rows: FloatArray, cones: Cones, point: FloatArray, duals: FloatArray, taken: int
) -> Solution:
    """A point and multipliers inside the cones, with what is left of the conditions of optimality.

    In the measure of the interior point: what is missed of feasibility, and of the rest over the multipliers' size.
    """
    slack = program.limits - rows @ point
    inside = slack.copy()
    np.maximum(inside[: cones.split], 0.0, out=inside[: cones.split])
    for part in cones.parts:
        inside[part.start] = max(slack[part.start], float(np.sqrt(slack[part][1:] @ slack[part][1:])))
    uphill, size = program.curvature * point + program.linear + duals @ rows, 1.0 + float(duals.max())
    return Solution(
        point, duals, SolverStatus.SOLVED, float(np.abs(inside - slack).max()), float(np.abs(uphill).max()) / size,
        float(inside @ duals) / size, taken,
    )


def _bent(duals: FloatArray, slack: FloatArray, rows: FloatArray, cones: Cones) -> FloatArray:
    """What the cones add to the Hessian of the Lagrangian (n, n) at their slacks."""
    bent = np.zeros((rows.shape[1], rows.shape[1]))
    for part in cones.parts:
        size = float(np.sqrt(slack[part][1:] @ slack[part][1:]))
        price = -float(duals[part][1:] @ slack[part][1:]) / size if size > 0 else 0.0
        if price > 0:
            tail, direction = rows[part.start + 1 : part.stop], slack[part][1:] / size
            across = tail - np.outer(direction, direction @ tail)
            bent += price / size * (across.T @ across)
    return bent
