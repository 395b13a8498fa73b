r"""The norm constraint ``multiplier >= ||w||_*`` in an interior point, one class a norm.

Every class holds the current slack and dual of its constraint and speaks the same language to the solver (`NormCone`).
Vectors ``(w, lam)`` of the constraint have the P feature weights first and the transport multiplier last. A Newton
step of the cone is ``dz = shift - curvature @ d(w, lam)``: ``curvature`` enters the normal matrix and ``shift``, which
depends on the wanted complementarity, enters the right-hand side.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from models.problem import FloatArray, TransportNorm

_DUAL_SHARE = 0.5  # how much of the multiplier's price the starting dual gives away where it is shared


class NormCone(Protocol):
    """What the interior point asks of a norm constraint."""

    degree: int

    def pull(self) -> FloatArray:
        """Return the dual's part ``(z_w, z_lam)`` of the stationarity equations, shape (P + 1,): what the dual pushes."""
        ...

    def complementarity(self) -> float:
        """Inner product of slack and dual."""
        ...

    def add_curvature(self, matrix: FloatArray, index: slice) -> None:
        """Add the curvature to the rows and columns ``index`` (features) and the last one (multiplier)."""
        ...

    def shift(self, target: float, corrected: bool) -> FloatArray:
        """Shift for complementarity ``target``, with Mehrotra's second-order term of the last step if ``corrected``."""
        ...

    def set_step(self, step: FloatArray) -> float:
        """Take the primal step ``d(w, lam)``, derive the dual one, return the longest step that stays inside (or inf)."""
        ...

    def after(self, length: float) -> float:
        """Complementarity after a step of ``length``."""
        ...

    def move(self, length: float, features: FloatArray, multiplier: float) -> None:
        """Move the dual by ``length`` and recompute the slack at the new point."""
        ...


def _longest(value: FloatArray, step: FloatArray) -> float:
    """Largest t with ``value + t * step >= 0`` (infinite when nothing falls)."""
    worst = float((step / value).min())
    return -1.0 / worst if worst < 0.0 else math.inf


class MaxNormCone:
    """``lam >= max |w_j|`` (transport norm l1) as 2P linear constraints."""

    def __init__(self, features: FloatArray, multiplier: float, price: float) -> None:
        self.degree = 2 * features.size
        self._signs = np.array([[-1.0], [1.0]])
        self._slack = multiplier + self._signs * features
        self._dual = np.full((2, features.size), price / self.degree)
        self._d_slack = np.zeros_like(self._slack)
        self._d_dual = np.zeros_like(self._slack)
        self._constant = np.zeros_like(self._slack)

    def _fold(self, pair: FloatArray) -> FloatArray:
        return np.append(pair[1] - pair[0], pair.sum())

    def pull(self) -> FloatArray:
        return self._fold(self._dual)

    def complementarity(self) -> float:
        return float(np.vdot(self._slack, self._dual))

    def add_curvature(self, matrix: FloatArray, index: slice) -> None:
        scale = self._dual / self._slack
        total, skew = scale.sum(axis=0), scale[1] - scale[0]
        diagonal = np.einsum("ii->i", matrix[index, index])
        diagonal += total
        matrix[index, -1] += skew
        matrix[-1, index] += skew
        matrix[-1, -1] += total.sum()

    def shift(self, target: float, corrected: bool) -> FloatArray:
        wanted = target - self._slack * self._dual
        if corrected:
            wanted -= self._d_slack * self._d_dual
        self._constant = wanted / self._slack
        return self._fold(self._constant)

    def set_step(self, step: FloatArray) -> float:
        self._d_slack = step[-1] + self._signs * step[:-1]
        self._d_dual = self._constant - self._dual / self._slack * self._d_slack
        return min(_longest(self._slack, self._d_slack), _longest(self._dual, self._d_dual))

    def after(self, length: float) -> float:
        return float(np.vdot(self._slack + length * self._d_slack, self._dual + length * self._d_dual))

    def move(self, length: float, features: FloatArray, multiplier: float) -> None:
        # Both move by steps: recomputed from the point, a slack far below the weights would round to nothing.
        self._dual += length * self._d_dual
        self._slack += length * self._d_slack


class SumNormCone:
    r"""``lam >= sum |w_j|`` (transport norm linf): bounds ``t_j >= |w_j|`` and ``lam >= sum t_j``, the t_j eliminated.

    Rows of the stacked arrays: ``t - w``, ``t + w``; the scalar constraint is kept apart. Eliminating t from the
    Newton equations leaves ``diag(4 u v / (u + v)) + g (b, 1)(b, 1)'`` with u, v the two scalings, ``b = (v-u)/(u+v)``
    and ``g = d / (1 + d sum 1/(u+v))``, d the scaling of the scalar constraint.
    """

    def __init__(self, features: FloatArray, multiplier: float, price: float) -> None:
        self.degree = 2 * features.size + 1
        room = (multiplier - float(np.abs(features).sum())) / (features.size + 1)
        self._bounds = np.abs(features) + room
        self._signs = np.array([[-1.0], [1.0]])
        self._slack = self._bounds + self._signs * features
        self._dual = np.full((2, features.size), _DUAL_SHARE * price)
        self._top_slack = multiplier - float(self._bounds.sum())
        self._top_dual = price
        self._d_slack = np.zeros_like(self._slack)
        self._d_dual = np.zeros_like(self._slack)
        self._constant = np.zeros_like(self._slack)
        self._d_top_slack = self._d_top_dual = self._top_constant = 0.0
        self._d_bounds = np.zeros_like(features)

    def pull(self) -> FloatArray:
        return np.append(self._dual[1] - self._dual[0], self._top_dual)

    def complementarity(self) -> float:
        return float(np.vdot(self._slack, self._dual)) + self._top_slack * self._top_dual

    def _scale(self) -> None:
        self._scaling = self._dual / self._slack
        self._total = self._scaling[0] + self._scaling[1]
        self._lean = (self._scaling[1] - self._scaling[0]) / self._total
        top = self._top_dual / self._top_slack
        self._coupling = top / (1.0 + top * float((1.0 / self._total).sum()))

    def add_curvature(self, matrix: FloatArray, index: slice) -> None:
        self._scale()
        diagonal = np.einsum("ii->i", matrix[index, index])
        diagonal += 4.0 * self._scaling[0] * self._scaling[1] / self._total
        row = self._coupling * self._lean
        matrix[index, index] += np.outer(row, self._lean)
        matrix[index, -1] += row
        matrix[-1, index] += row
        matrix[-1, -1] += self._coupling

    def shift(self, target: float, corrected: bool) -> FloatArray:
        wanted = target - self._slack * self._dual
        top = target - self._top_slack * self._top_dual
        if corrected:
            wanted -= self._d_slack * self._d_dual
            top -= self._d_top_slack * self._d_top_dual
        self._constant = wanted / self._slack
        self._top_constant = top / self._top_slack
        # The bounds' own equation: sum of their duals' steps, less the top's, makes up for its residual.
        self._bound_push = (self._constant.sum(axis=0) - self._top_constant
                            + self._dual.sum(axis=0) - self._top_dual) / self._total
        carried = self._coupling * float(self._bound_push.sum())
        features = self._constant[1] - self._constant[0] - self._lean * self._total * self._bound_push
        return np.append(features + carried * self._lean, self._top_constant + carried)

    def set_step(self, step: FloatArray) -> float:
        features, multiplier = step[:-1], float(step[-1])
        plain = self._bound_push - self._lean * features
        push = self._coupling * (multiplier - float(plain.sum()))
        self._d_bounds = plain + push / self._total
        self._d_slack = self._d_bounds + self._signs * features
        self._d_dual = self._constant - self._scaling * self._d_slack
        self._d_top_slack = multiplier - float(self._d_bounds.sum())
        self._d_top_dual = self._top_constant - self._top_dual / self._top_slack * self._d_top_slack
        longest = min(_longest(self._slack, self._d_slack), _longest(self._dual, self._d_dual))
        for value, change in ((self._top_slack, self._d_top_slack), (self._top_dual, self._d_top_dual)):
            if change < 0.0:
                longest = min(longest, -value / change)
        return longest

    def after(self, length: float) -> float:
        rest = float(np.vdot(self._slack + length * self._d_slack, self._dual + length * self._d_dual))
        return rest + (self._top_slack + length * self._d_top_slack) * (self._top_dual + length * self._d_top_dual)

    def move(self, length: float, features: FloatArray, multiplier: float) -> None:
        self._dual += length * self._d_dual
        self._top_dual += length * self._d_top_dual
        self._slack += length * self._d_slack
        self._top_slack += length * self._d_top_slack


class EuclideanCone:
    """``lam >= ||w||_2`` (transport norm l2): one second-order cone with Nesterov-Todd scaling."""

    def __init__(self, features: FloatArray, multiplier: float, price: float) -> None:
        self.degree = 1
        self._slack = np.append(features, multiplier)
        self._dual = np.append(np.zeros_like(features), price)
        self._d_slack = np.zeros_like(self._slack)
        self._d_dual = np.zeros_like(self._slack)

    def pull(self) -> FloatArray:
        return self._dual

    def complementarity(self) -> float:
        return float(self._slack @ self._dual)

    def _scale(self) -> None:
        slack_size, dual_size = math.sqrt(_size(self._slack)), math.sqrt(_size(self._dual))
        slack, dual = self._slack / slack_size, self._dual / dual_size
        middle = slack - dual
        middle[-1] = slack[-1] + dual[-1]
        middle /= math.sqrt(2.0 * (1.0 + float(slack @ dual)))
        self._middle = middle  # the scaling is W = beta (2 v v' - J), W^-2 = (2 J m m' J - J) / beta^2
        self._beta = math.sqrt(slack_size / dual_size)
        root = middle.copy()
        root[-1] += 1.0
        self._root = root / math.sqrt(2.0 * root[-1])
        self._scaled = self._beta * (2.0 * float(self._root @ self._dual) * self._root - _mirror(self._dual))
        self._scaled_size = slack_size * dual_size

    def _unscale(self, vector: FloatArray) -> FloatArray:
        """``W^-1 vector``."""
        mirrored = _mirror(self._root)
        return (2.0 * float(mirrored @ vector) * mirrored - _mirror(vector)) / self._beta

    def _rescale(self, vector: FloatArray) -> FloatArray:
        """``W vector``."""
        return self._beta * (2.0 * float(self._root @ vector) * self._root - _mirror(vector))

    def add_curvature(self, matrix: FloatArray, index: slice) -> None:
        self._scale()
        inverse = 1.0 / self._beta**2
        mirrored = _mirror(self._middle)
        rank_one = 2.0 * inverse * np.outer(mirrored, mirrored)
        matrix[index, index] += rank_one[:-1, :-1]
        diagonal = np.einsum("ii->i", matrix[index, index])
        diagonal += inverse
        matrix[index, -1] += rank_one[:-1, -1]
        matrix[-1, index] += rank_one[-1, :-1]
        matrix[-1, -1] += rank_one[-1, -1] - inverse

    def shift(self, target: float, corrected: bool) -> FloatArray:
        wanted = -_product(self._scaled, self._scaled)
        wanted[-1] += target
        if corrected:
            wanted -= _product(self._unscale(self._d_slack), self._rescale(self._d_dual))
        self._constant = self._unscale(_divide(wanted, self._scaled, self._scaled_size))
        return self._constant

    def set_step(self, step: FloatArray) -> float:
        self._d_slack = step
        self._d_dual = self._constant - self._unscale(self._unscale(step))
        return min(_longest_in_cone(self._slack, self._d_slack), _longest_in_cone(self._dual, self._d_dual))

    def after(self, length: float) -> float:
        return float((self._slack + length * self._d_slack) @ (self._dual + length * self._d_dual))

    def move(self, length: float, features: FloatArray, multiplier: float) -> None:
        self._dual = self._dual + length * self._d_dual
        self._slack = np.append(features, multiplier)


def _mirror(vector: FloatArray) -> FloatArray:
    """``J vector`` with J = diag(-1, ..., -1, 1)."""
    mirrored = -vector
    mirrored[-1] = vector[-1]
    return mirrored


def _size(vector: FloatArray) -> float:
    """``x_last^2 - ||x_rest||^2`` without squaring away the difference."""
    radius = math.sqrt(float(vector[:-1] @ vector[:-1]))
    return float((vector[-1] - radius) * (vector[-1] + radius))


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Jordan product of the second-order cone."""
    result = left[-1] * right + right[-1] * left
    result[-1] = left @ right
    return result


def _divide(vector: FloatArray, by: FloatArray, by_size: float) -> FloatArray:
    """Solve ``by o x = vector`` in the Jordan product."""
    last = (by[-1] * vector[-1] - float(by[:-1] @ vector[:-1])) / by_size
    result: FloatArray = (vector - last * by) / by[-1]
    result[-1] = last
    return result


def _longest_in_cone(value: FloatArray, step: FloatArray) -> float:
    """Largest t with ``value + t * step`` in the second-order cone."""
    constant = _size(value)
    linear = float(value[-1] * step[-1] - value[:-1] @ step[:-1])
    square = float(step[-1] ** 2 - step[:-1] @ step[:-1])
    inside = linear * linear - square * constant
    if inside < 0.0:
        return math.inf
    denominator = math.sqrt(inside) - linear
    return constant / denominator if denominator > 0.0 else math.inf


CONES: dict[TransportNorm, type[MaxNormCone] | type[SumNormCone] | type[EuclideanCone]] = {
    "l1": MaxNormCone,
    "l2": EuclideanCone,
    "linf": SumNormCone,
}
