r"""The interior point method on programs of some tens of columns and hundreds of rows, whose cost is calls.

    min 1/2 x' diag(curvature) x + <linear, x>   subject to   slack = limits - rows x in R_+^l x Q_1 x .. x Q_k

Mehrotra's predictor-corrector with Nesterov-Todd scaling, as ``models.solvers.conic_interior_point`` says it, in scaled
coordinates: with ``W dual = W^-1 slack = p``, ``S = W^-1 rows``, r what is left of feasibility, and
``c = linear + curvature x``, a direction is

    push = W^-1 r + p \ wanted,      (diag(curvature) + S'S) dx = -c - S' push,
    W^-1 dslack = -W^-1 r - S dx,    W ddual = push + S dx - p,

where ``\`` divides in the Jordan product (p by itself is p, and W^-1 of that the dual). Slack and multipliers are one
vector there, so the longest step is that from p in both. What is scaled is scaled once, and a step has some half of the
calls of one that applies W to every vector.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dsyr, dsyrk, idamax
from scipy.linalg.lapack import dpotrs

from models.basics import FloatArray
from models.solvers.cone_program import BACK_OFF, MAX_STEPS, SURFACE, ConeProgram, Progress
from models.solvers.newton_factor import ridge_of, triangle
from models.solvers.second_order_cone import Cones, depth, determinant, jordan_product, lowest_change
from models.solvers.solution import Solution


def solve_dense(program: ConeProgram, tolerance: float) -> Solution:
    """Best iterate of a program whose rows are a matrix: at the tolerance, at rounding, or at the limit of steps."""
    rows, limits, curvature = np.asarray(program.rows), program.limits, program.curvature
    (m, n), cones, curved = rows.shape, Cones.of(rows.shape[0], program.cones), bool(curvature.any())
    split, degree = cones.split, cones.degree
    x = np.zeros(n) if program.start is None else program.start
    slack, dual = program.first_iterate(limits - rows.dot(x), cones)
    progress, first, unit, whole = Progress(tolerance), (x, dual), cones.unit(m), False
    scaled, point, residual = np.empty((m, n)), np.empty(m), np.empty(m)
    inside, ridge = [_Cone(rows[part], part) for part in cones.parts], np.diag(ridge_of(curvature))
    for taken in range(MAX_STEPS):
        slope = program.linear + curvature * x if curved else program.linear
        uphill = dual.dot(rows)
        uphill += slope
        missed = rows.dot(x)
        missed += slack
        missed -= limits
        product, size = float(slack.dot(dual)), 1.0 + _largest(dual)
        mean = product / degree
        if progress.judge(taken, x, dual, (_largest(missed), _largest(uphill), product), mean, size)[1]:
            break
        if split and min(_least(slack[:split]), _least(dual[:split])) <= 0.0:
            break  # a step was rounded to the border: the best iterate so far is what can be had
        inverse = np.sqrt(dual[:split] / slack[:split])
        np.multiply(slack[:split], inverse, out=point[:split])
        np.multiply(missed[:split], inverse, out=residual[:split])
        np.multiply(rows[:split], inverse[:, None], out=scaled[:split])
        if not all(cone.scale(slack, dual, missed, point, residual, scaled) for cone in inside):
            break
        matrix = dsyrk(1.0, scaled[:split].T, beta=1.0, c=ridge, lower=True)
        for cone in inside:
            matrix = cone.add_square(matrix)
        if (factor := triangle(matrix)) is None:
            break

        pushed = residual + scaled.dot(_solution(factor, slope, residual, scaled))
        turned, other = -pushed, pushed - point
        lowest = _lowest(point, turned, other, split, inside)
        step = min(1.0, -1.0 / lowest) if lowest < 0 else 1.0
        ahead = max((1.0 - step) * product + step * step * float(turned.dot(other)), 0.0)
        wanted = (min(1.0, ahead / product) ** 3 * mean) * unit
        wanted[:split] -= turned[:split] * other[:split]
        wanted[:split] /= point[:split]
        for cone in inside:
            cone.divide(wanted, turned, other, point)

        # What the multipliers are to gain is unscaled once, for the right side and for the step: no rounding between.
        wanted += residual
        other = wanted - point
        _unscale(wanted, inverse, inside)
        dx = _solution(factor, slope, wanted, rows)
        moved = scaled.dot(dx)
        turned = -residual - moved
        other += moved
        lowest = _lowest(point, turned, other, split, inside)
        step = min(1.0, -BACK_OFF / lowest) if lowest < 0 else 1.0
        progress.moved(step)
        _unscale(moved, inverse, inside)
        moved += wanted
        moved -= dual  # what the multipliers gain
        missed += rows.dot(dx)  # what the slacks lose
        x, slack, dual = x + step * dx, slack - step * missed, dual + step * moved
    else:
        whole = True
    return progress.found(*first, whole)


def _largest(vector: FloatArray) -> float:
    """Largest absolute entry."""
    return abs(float(vector[idamax(vector)]))


def _least(vector: FloatArray) -> float:
    """Least entry."""
    return float(vector[vector.argmin()])


def _lowest(
    point: FloatArray, turned: FloatArray, other: FloatArray, split: int, cones: list[_Cone]
) -> float:
    """Minus one over the longest step of slack and multipliers from the scaled point; 0 where all steps stay inside."""
    lowest = 0.0
    if split:
        lowest = min(_least(turned[:split] / point[:split]), _least(other[:split] / point[:split]), 0.0)
    for cone in cones:
        lowest = min(lowest, cone.lowest(point, turned), cone.lowest(point, other))
    return lowest


def _unscale(vector: FloatArray, inverse: FloatArray, cones: list[_Cone]) -> None:
    """``W^-1`` of a vector (m,), in its place."""
    vector[: inverse.size] *= inverse
    for cone in cones:
        cone.unscale(vector)


def _solution(factor: FloatArray, slope: FloatArray, push: FloatArray, rows: FloatArray) -> FloatArray:
    """Step (n,) of the point, from a push (m,) and rows that are both scaled, or both are not."""
    right = push.dot(rows)
    right += slope
    return np.asarray(-dpotrs(factor, right, lower=True, overwrite_b=True)[0])


class _Cone:
    """One second-order cone and its scaling ``W^-1 = (2 v v' - J) / size``, J = diag(1, -1, .., -1)."""

    def __init__(self, rows: FloatArray, part: slice) -> None:
        self._rows, self._part = rows, part
        self._square = np.asfortranarray(rows.T @ rows - 2.0 * np.outer(rows[0], rows[0]))
        self._back, self._size, self._determinant = np.zeros(0), 1.0, 1.0

    def scale(
        self, slack: FloatArray, dual: FloatArray, missed: FloatArray, point: FloatArray, residual: FloatArray,
        scaled: FloatArray,
    ) -> bool:
        """Scaling of slack and dual; the scaled ``point``, ``residual`` and rows (m, n). False: no longer known."""
        s, z = slack[self._part], dual[self._part]
        if min(depth(s), depth(z)) <= SURFACE:
            return False
        of_slack, of_dual = math.sqrt(determinant(s)), math.sqrt(determinant(z))
        # At least 1 inside the cone; rounding at its boundary must not say otherwise.
        length = math.sqrt(2.0 * (1.0 + max(float(s.dot(z)) / (of_slack * of_dual), 1.0)))
        back = z / (of_dual * length) - s / (of_slack * length)
        back[0] += 2.0 * float(s[0]) / (of_slack * length) + 1.0
        back /= math.sqrt(2.0 * float(back[0]))
        self._back, self._size, self._determinant = back, math.sqrt(of_slack / of_dual), of_slack * of_dual
        part, inverse = self._part, 1.0 / self._size
        point[part], residual[part] = s, missed[part]
        self.unscale(point)
        self.unscale(residual)
        rows = np.multiply(self._rows, inverse, out=scaled[part])
        rows[0] *= -1.0
        rows += (2.0 * inverse * back)[:, None] * back.dot(self._rows)
        return True

    def add_square(self, matrix: FloatArray) -> FloatArray:
        """``rows' W^-2 rows`` of the cone, added to the lower triangle of a matrix (n, n), in its place.

        ``W^-2`` is ``(2 a a' - J) / size^2``: of the scaled rows' product it has more digits near the border.
        """
        inverse, axis = 1.0 / (self._size * self._size), (2.0 * float(self._back[0])) * self._back
        axis[0] -= 1.0
        matrix += inverse * self._square
        return np.asarray(dsyr(2.0 * inverse, axis.dot(self._rows), lower=True, a=matrix, overwrite_a=True))

    def unscale(self, vector: FloatArray) -> None:
        """``W^-1`` of what a vector (m,) has in this cone, in its place."""
        own = vector[self._part]
        along, head = 2.0 * float(self._back.dot(own)), float(own[0])
        own += along * self._back
        own[0] -= 2.0 * head
        own /= self._size

    def lowest(self, point: FloatArray, change: FloatArray) -> float:
        """Minus one over the longest step inside."""
        return lowest_change(point[self._part], change[self._part], self._determinant)

    def divide(self, wanted: FloatArray, turned: FloatArray, other: FloatArray, point: FloatArray) -> None:
        r"""``point \ (wanted - turned o other)`` in the Jordan product, in the place of ``wanted``."""
        own, at = wanted[self._part], point[self._part]
        own -= jordan_product(turned[self._part], other[self._part])
        head = (float(at[0] * own[0]) - float(at[1:].dot(own[1:]))) / self._determinant
        own -= head * at
        own /= at[0]
        own[0] = head
