r"""A small dense interior point method: separable quadratic objective, linear rows, at most one second-order cone.

    min 1/2 x' diag(curvature) x + <linear, x>   subject to   limits - rows x in R_+^(m - k) x Q_k,

``Q_k = {(t, u) : ||u||_2 <= t}``. Mehrotra's predictor-corrector with Nesterov-Todd scaling from an infeasible start
(Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers"). One product of the rows with themselves
and one Cholesky factor a step; deterministic. Made for programs of some tens of variables and hundreds of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from models.problem import FloatArray

_MAX_STEPS = 60
_PATIENCE, _NEAR = 3, 1e-7
_ROUNDING = 1e-17
_SURFACE = 1e-13
_BACK_OFF = 0.99
_ROOM = 0.1
_SHORT_STEPS = 1e-10


@dataclass(frozen=True)
class ConeProgram:
    """Data of the program; the last ``cone`` rows are the cone's (0: none). ``start`` (n,): a point to start from."""

    curvature: FloatArray
    linear: FloatArray
    rows: FloatArray
    limits: FloatArray
    cone: int = 0
    start: FloatArray | None = None


def solve_cone_program(program: ConeProgram, tolerance: float = 1e-13) -> tuple[FloatArray, FloatArray]:
    """Point (n,) and duals (m,) of the best iterate: at the tolerance, or where rounding stopped progress."""
    rows, limits = program.rows, program.limits
    m, n = rows.shape
    split = m - program.cone
    degree = split + (1 if program.cone else 0)
    x = np.zeros(n) if program.start is None else program.start
    unit = _unit(m, split)
    slack, dual = limits - rows @ x, unit.copy()
    np.maximum(slack[:split], _ROOM, out=slack[:split])
    if program.cone and not (slack[split] > 0 and _depth(slack[split:]) > _ROOM):
        slack[split:] = unit[split:]
    best, least, idle = (x, dual), np.inf, 0
    for _ in range(_MAX_STEPS):
        dual_residual = program.curvature * x + program.linear + rows.T @ dual
        primal_residual = rows @ x + slack - limits
        mean = float(slack @ dual) / degree
        size = 1.0 + float(np.abs(dual).max())
        error = max(
            float(np.abs(dual_residual).max()) / size, float(np.abs(primal_residual).max()), mean * degree / size
        )
        best, least, idle = ((x, dual), error, 0) if error < least else (best, least, idle + 1)
        if error <= tolerance or not mean > _ROUNDING * size or (idle > _PATIENCE and least < _NEAR):
            break
        if program.cone and min(_depth(slack[split:]), _depth(dual[split:])) <= _SURFACE:
            break
        scaling = _Scaling.at(slack, dual, split)
        newton = _Newton.at(program, scaling, dual_residual, primal_residual)
        if newton is None:
            break
        square = scaling.product(scaling.point, scaling.point)
        _, dslack, ddual = newton.direction(square)
        step = min(1.0, _longest(slack, dslack, split), _longest(dual, ddual, split))
        ahead = float((slack + step * dslack) @ (dual + step * ddual)) / degree
        centring = min(1.0, max(ahead, 0.0) / mean) ** 3
        second = scaling.product(scaling.unscale(dslack), scaling.scale(ddual))
        dx, dslack, ddual = newton.direction(square + second - centring * mean * unit)
        step = min(1.0, _BACK_OFF * min(_longest(slack, dslack, split), _longest(dual, ddual, split)))
        x, slack, dual = x + step * dx, slack + step * dslack, dual + step * ddual
    return best


def _unit(m: int, split: int) -> FloatArray:
    """Identity element of the cone: ones, and (1, 0, ..) for the second-order part."""
    unit = np.ones(m)
    unit[split + 1 :] = 0.0
    return unit


@dataclass(frozen=True)
class _Scaling:
    """Nesterov-Todd scaling W with ``W dual = W^-1 slack = point``; ``inverse`` is the linear part of W^-1."""

    split: int
    linear: FloatArray
    inverse: FloatArray
    axis: FloatArray
    mirrored: FloatArray
    size: float
    point: FloatArray

    @staticmethod
    def at(slack: FloatArray, dual: FloatArray, split: int) -> _Scaling:
        point = np.empty_like(slack)
        roots, dual_roots = np.sqrt(slack[:split]), np.sqrt(dual[:split])
        linear, inverse = roots / dual_roots, dual_roots / roots
        point[:split] = roots * dual_roots
        axis, size = np.zeros(0), 1.0
        if split < slack.shape[0]:
            s, z = slack[split:], dual[split:]
            s_size, z_size = np.sqrt(_determinant(s)), np.sqrt(_determinant(z))
            s, z = s / s_size, z / z_size
            axis = (s + _mirror(z)) / (2.0 * np.sqrt(0.5 * (1.0 + float(s @ z))))
            size = float(np.sqrt(s_size / z_size))
            point[split:] = size * _hyperbolic(axis, dual[split:])
        return _Scaling(split, linear, inverse, axis, _mirror(axis), size, point)

    def scale(self, vector: FloatArray) -> FloatArray:
        """``W vector``."""
        result = np.empty_like(vector)
        result[: self.split] = self.linear * vector[: self.split]
        if self.axis.shape[0]:
            result[self.split :] = self.size * _hyperbolic(self.axis, vector[self.split :])
        return result

    def unscale(self, vector: FloatArray) -> FloatArray:
        """``W^-1 vector``."""
        result = np.empty_like(vector)
        result[: self.split] = self.inverse * vector[: self.split]
        if self.axis.shape[0]:
            result[self.split :] = _hyperbolic(self.mirrored, vector[self.split :]) / self.size
        return result

    def unscale_twice(self, vector: FloatArray) -> FloatArray:
        """``W^-2 vector``."""
        result = np.empty_like(vector)
        result[: self.split] = self.inverse * self.inverse * vector[: self.split]
        if self.axis.shape[0]:
            tail = vector[self.split :]
            turned = (2.0 * float(self.mirrored @ tail)) * self.mirrored - _mirror(tail)
            result[self.split :] = turned / (self.size * self.size)
        return result

    def product(self, u: FloatArray, v: FloatArray) -> FloatArray:
        """Jordan product."""
        result = u * v
        if self.axis.shape[0]:
            a, b = u[self.split :], v[self.split :]
            result[self.split] = float(a @ b)
            result[self.split + 1 :] = a[0] * b[1:] + b[0] * a[1:]
        return result

    def divide(self, v: FloatArray) -> FloatArray:
        """``x`` with ``point * x = v`` in the Jordan product."""
        result = v / np.where(self.point == 0, 1.0, self.point)
        if self.axis.shape[0]:
            a, b = self.point[self.split :], v[self.split :]
            head = (a[0] * b[0] - float(a[1:] @ b[1:])) / _determinant(a)
            result[self.split] = head
            result[self.split + 1 :] = (b[1:] - head * a[1:]) / a[0]
        return result

    def gram(self, rows: FloatArray) -> FloatArray:
        """``rows' W^-2 rows``."""
        scaled = rows[: self.split] * self.inverse[:, None]
        total = scaled.T @ scaled
        if self.axis.shape[0]:
            tail = rows[self.split :]
            along = self.mirrored @ tail
            total += (2.0 * np.outer(along, along) - np.outer(tail[0], tail[0]) + tail[1:].T @ tail[1:]) / self.size**2
        return np.asarray(total)


@dataclass(frozen=True)
class _Newton:
    rows: FloatArray
    scaling: _Scaling
    factor: FloatArray
    dual_residual: FloatArray
    primal_residual: FloatArray

    @staticmethod
    def at(
        program: ConeProgram, scaling: _Scaling, dual_residual: FloatArray, primal_residual: FloatArray
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


def _mirror(vector: FloatArray) -> FloatArray:
    """The vector with all but its first entry negated."""
    mirrored: FloatArray = -vector
    mirrored[:1] *= -1.0
    return mirrored


def _depth(u: FloatArray) -> float:
    """How far inside the cone a point lies, relative to its size."""
    return 1.0 - float(np.sqrt(u[1:] @ u[1:])) / float(u[0])


def _determinant(u: FloatArray) -> float:
    tail = float(np.sqrt(u[1:] @ u[1:]))
    return max((float(u[0]) - tail) * (float(u[0]) + tail), np.finfo(np.float64).tiny)


def _hyperbolic(axis: FloatArray, vector: FloatArray) -> FloatArray:
    """Product with ``[a0, a1'; a1, I + a1 a1' / (1 + a0)]``."""
    inner = float(axis[1:] @ vector[1:])
    result: FloatArray = vector + axis * (vector[0] + inner / (1.0 + axis[0]))
    result[0] = axis[0] * vector[0] + inner
    return result


def _longest(point: FloatArray, change: FloatArray, split: int) -> float:
    """Longest step that stays in the cone."""
    falling = change[:split] < 0
    longest = float((-point[:split][falling] / change[:split][falling]).min(initial=np.inf))
    if split < point.shape[0]:
        u, v = point[split:], change[split:]
        along = float(u[0] * v[0] - u[1:] @ v[1:])
        bend = float(v[0] * v[0] - v[1:] @ v[1:])
        root = along * along - bend * _determinant(u)
        if root >= 0 and (speed := float(np.sqrt(root)) - along) > 0:
            longest = min(longest, _determinant(u) / speed)
        if v[0] < 0:
            # Where u and v are parallel, rounding can hide the border above.
            longest = min(longest, float(-u[0] / v[0]))
    return longest
