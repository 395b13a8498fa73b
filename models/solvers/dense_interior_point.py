r"""The interior point method on programs of some tens of columns and hundreds of rows, whose cost is calls.

    min 1/2 x' diag(curvature) x + <linear, x>   subject to   slack = limits - rows x in R_+^l x Q_1 x .. x Q_k

Mehrotra's predictor-corrector with Nesterov-Todd scaling, as ``models.solvers.conic_interior_point`` says it, in scaled
coordinates throughout: with ``W dual = W^-1 slack = p``, ``S = W^-1 rows``, and r, d what is left of feasibility and of
stationarity, a direction is

    push = W^-1 r - p + p \ wanted,      (diag(curvature) + S'S) dx = -d - S' push,
    W^-1 dslack = -W^-1 r - S dx,        W ddual = push + S dx,

where ``\`` divides in the Jordan product. Slack and multipliers are one vector there, so the longest step is that from
p in both, and a predictor, whose two sum to -p, needs one quotient for it. What is scaled is scaled once, the product
is one of S with itself, and a step has some half of the calls of one that applies W to every vector.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dsyrk, idamax
from scipy.linalg.lapack import dpotrs

from models.basics import FloatArray
from models.solvers.cone_program import BACK_OFF, MAX_STEPS, SURFACE, ConeProgram, Progress
from models.solvers.newton_factor import ridge_of, triangle
from models.solvers.second_order_cone import Cones, determinant, jordan_product, lowest_change
from models.solvers.solution import Solution


def solve_dense(program: ConeProgram, tolerance: float) -> Solution:
    """Best iterate of a program whose rows are a matrix: at the tolerance, at rounding, or at the limit of steps."""
    rows, limits, curvature = np.asarray(program.rows), program.limits, program.curvature
    (m, n), cones = rows.shape, Cones.of(rows.shape[0], program.cones)
    split, degree, curved = cones.split, cones.degree, bool(curvature.any())
    x = np.zeros(n) if program.start is None else program.start
    slack, dual = program.first_iterate(limits - rows.dot(x), cones)
    progress, first, unit, whole = Progress(tolerance), (x, dual), cones.unit(m), False
    scaled, point, residual = np.empty((m, n)), np.empty(m), np.empty(m)
    inside, ridge = [_Cone(rows[part], part) for part in cones.parts], ridge_of(curvature)
    for taken in range(MAX_STEPS):
        uphill = dual.dot(rows)
        uphill += program.linear
        if curved:
            uphill += curvature * x
        missed = rows.dot(x)
        missed += slack
        missed -= limits
        product, size = float(slack.dot(dual)), 1.0 + _largest(dual)
        mean = product / degree
        if progress.judge(taken, x, dual, (_largest(missed), _largest(uphill), product), mean, size)[1]:
            break
        inverse = np.sqrt(dual[:split] / slack[:split])
        np.multiply(slack[:split], inverse, out=point[:split])
        np.multiply(missed[:split], inverse, out=residual[:split])
        np.multiply(rows[:split], inverse[:, None], out=scaled[:split])
        if not all(cone.scale(slack, dual, missed, point, residual, scaled) for cone in inside):
            break
        if (factor := triangle(dsyrk(1.0, scaled.T, lower=True), ridge)) is None:
            break

        push = residual - point
        dx = _solution(factor, uphill, push, scaled)
        moved = scaled.dot(dx)
        turned, other = -residual - moved, push + moved
        lowest = 0.0
        if split:
            quotient = turned[:split] / point[:split]
            lowest = min(_least(quotient), -1.0 - float(quotient[quotient.argmax()]), 0.0)
        for cone in inside:
            lowest = min(lowest, cone.lowest(point, turned), cone.lowest(point, other))
        step = min(1.0, -1.0 / lowest) if lowest < 0 else 1.0
        ahead = max((1.0 - step) * product + step * step * float(turned.dot(other)), 0.0)
        wanted = (min(1.0, ahead / product) ** 3 * mean) * unit
        wanted[:split] -= turned[:split] * other[:split]
        wanted[:split] /= point[:split]
        for cone in inside:
            cone.divide(wanted, turned, other, point)

        push += wanted
        dx = _solution(factor, uphill, push, scaled)
        moved = scaled.dot(dx)
        turned, other = -residual - moved, push + moved
        lowest = 0.0
        if split:
            lowest = min(_least(turned[:split] / point[:split]), _least(other[:split] / point[:split]), 0.0)
        for cone in inside:
            lowest = min(lowest, cone.lowest(point, turned), cone.lowest(point, other))
        step = min(1.0, -BACK_OFF / lowest) if lowest < 0 else 1.0
        progress.moved(step)
        other[:split] *= inverse
        for cone in inside:
            cone.unscale(other)
        missed += rows.dot(dx)  # now what the slacks lose
        x, slack, dual = x + step * dx, slack - step * missed, dual + step * other
    else:
        whole = True
    return progress.found(*first, whole)


def _largest(vector: FloatArray) -> float:
    """Largest absolute entry."""
    return abs(float(vector[idamax(vector)]))


def _least(vector: FloatArray) -> float:
    """Least entry."""
    return float(vector[vector.argmin()])


def _solution(factor: FloatArray, uphill: FloatArray, push: FloatArray, scaled: FloatArray) -> FloatArray:
    """Step (n,) of the point."""
    right = push.dot(scaled)
    right += uphill
    return np.asarray(-dpotrs(factor, right, lower=True, overwrite_b=True)[0])


class _Cone:
    """One second-order cone and its scaling ``W^-1 = (2 v v' - J) / size``, J = diag(1, -1, .., -1)."""

    def __init__(self, rows: FloatArray, part: slice) -> None:
        self._rows, self._part = rows, part
        self._back, self._size, self._determinant = np.zeros(0), 1.0, 1.0

    def scale(
        self, slack: FloatArray, dual: FloatArray, missed: FloatArray, point: FloatArray, residual: FloatArray,
        scaled: FloatArray,
    ) -> bool:
        """Scaling of slack and dual; the scaled ``point``, ``residual`` and rows (m, n). False: no longer known."""
        s, z = slack[self._part], dual[self._part]
        head, tall = float(s[0]), float(z[0])
        if min(1.0 - math.sqrt(s[1:].dot(s[1:])) / head, 1.0 - math.sqrt(z[1:].dot(z[1:])) / tall) <= SURFACE:
            return False
        of_slack, of_dual = math.sqrt(determinant(s)), math.sqrt(determinant(z))
        # At least 1 inside the cone; rounding at its boundary must not say otherwise.
        length = math.sqrt(2.0 * (1.0 + max(float(s.dot(z)) / (of_slack * of_dual), 1.0)))
        back = z / (of_dual * length) - s / (of_slack * length)
        back[0] += 2.0 * head / (of_slack * length) + 1.0
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
