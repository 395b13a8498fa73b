"""Dual of the transport norm l2."""

from __future__ import annotations

import math

import numpy as np

from models.basics import FloatArray
from models.prox.hinge.cones.cone import NormCone


class EuclideanCone(NormCone):
    """``multiplier >= ||w||_2``: one second-order cone with Nesterov-Todd scaling.

    The scaling is ``W = beta (2 v v' - J)`` with ``J = diag(-1, ..., -1, 1)``; in scaled coordinates slack and dual
    are the same vector. Notation of Vandenberghe, "The CVXOPT linear and quadratic cone program solvers" (2010).
    """

    def __init__(self, features: FloatArray, floor: float, price: float, target: float) -> None:
        self.degree = 1
        half = 0.5 * target / price
        radius = math.sqrt(float(features @ features))
        self.multiplier = max(half + math.sqrt(half * half + radius * radius), floor)
        room = max(self.multiplier - radius, half * half / self.multiplier)
        self._slack: FloatArray = np.append(features, self.multiplier)
        self._mirror = np.full(self._slack.size, -1.0)
        self._mirror[-1] = 1.0
        self._dual: FloatArray = self._mirror * self._slack * (target / (room * (self.multiplier + radius)))
        self._step_slack = np.zeros_like(self._slack)
        self._step_dual = np.zeros_like(self._slack)

    def pull(self) -> FloatArray:
        """See :class:`NormCone`."""
        return self._dual

    def complementarity(self) -> float:
        """See :class:`NormCone`."""
        return float(self._slack @ self._dual)

    def add_curvature(self, matrix: FloatArray) -> None:
        """See :class:`NormCone`."""
        mirror = self._mirror
        self._slack_size, self._dual_size = _squared_size(self._slack), _squared_size(self._dual)
        slack_length, dual_length = math.sqrt(self._slack_size), math.sqrt(self._dual_size)
        middle = self._slack / slack_length + mirror * self._dual / dual_length
        # at least 1 inside the cone; rounding at its boundary must not say otherwise
        cosine = max(float(self._slack @ self._dual) / (slack_length * dual_length), 1.0)
        middle /= math.sqrt(2.0 * (1.0 + cosine))
        beta = math.sqrt(slack_length / dual_length)
        root = middle.copy()
        root[-1] += 1.0
        root /= math.sqrt(2.0 * float(root[-1]))
        self._middle = mirror * middle
        self._root = mirror * root
        self._beta = beta
        # W z = beta (2 (v'z) v - J z)
        self._scaled = beta * (2.0 * float(root @ self._dual) * root - mirror * self._dual)
        self._scaled_size = slack_length * dual_length
        self._inverse = 1.0 / (beta * beta)
        p = mirror.size - 1
        size = matrix.shape[0]
        rank_one = (2.0 * self._inverse * self._middle)[:, None] * self._middle
        matrix[:p, :p] += rank_one[:p, :p]
        matrix.ravel()[: p * size : size + 1] += self._inverse
        matrix[-1, :p] += rank_one[-1, :p]
        matrix[-1, -1] += rank_one[-1, -1] - self._inverse

    def _unscale(self, vector: FloatArray) -> FloatArray:
        """``W^-1 vector``."""
        result: FloatArray = (2.0 * float(self._root @ vector)) * self._root
        result -= self._mirror * vector
        result /= self._beta
        return result

    def shift(self, target: float, correction: float) -> FloatArray:
        """See :class:`NormCone`."""
        if target > 0.0:
            # (W^-1 ds) o (W dz) of the predictor, where W dz = -scaled - W^-1 ds
            turned = self._unscale(self._step_slack)
            wanted = correction * _product(turned, turned + self._scaled)
            wanted[-1] += target
            self._constant: FloatArray = self._unscale(_divide(wanted, self._scaled, self._scaled_size)) - self._dual
        else:
            self._constant = -self._dual
        return self._constant

    def set_step(self, step: FloatArray) -> float:
        """See :class:`NormCone`."""
        self._step_slack = step
        curved = (2.0 * float(self._middle @ step)) * self._middle
        curved -= self._mirror * step
        self._step_dual = self._constant - self._inverse * curved
        return min(
            _lowest_in_cone(self._slack, step, self._slack_size),
            _lowest_in_cone(self._dual, self._step_dual, self._dual_size),
        )

    def curved_change(self) -> float:
        """See :class:`NormCone`."""
        return float(self._step_slack @ self._step_dual)

    def move(self, length: float) -> None:
        """See :class:`NormCone`."""
        self._slack = self._slack + length * self._step_slack
        self._dual = self._dual + length * self._step_dual

    def resettle(self, features: FloatArray, multiplier: float) -> bool:
        """See :class:`NormCone`."""
        if not multiplier > math.sqrt(float(features @ features)):
            return False
        self._slack = np.append(features, multiplier)
        return True


def _squared_size(vector: FloatArray) -> float:
    """``x_last^2 - ||x_rest||^2`` without squaring away the difference."""
    rest, last = vector[:-1], float(vector[-1])
    radius = math.sqrt(float(rest @ rest))
    size = (last - radius) * (last + radius)
    # A slack below working precision counts as the least one that the numbers can tell from the boundary.
    return max(size, 1e-16 * last * last)


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Jordan product of the second-order cone."""
    result: FloatArray = left[-1] * right + right[-1] * left
    result[-1] = left @ right
    return result


def _divide(vector: FloatArray, by: FloatArray, by_size: float) -> FloatArray:
    """Solve ``by o x = vector`` in the Jordan product."""
    last = (by[-1] * vector[-1] - float(by[:-1] @ vector[:-1])) / by_size
    result: FloatArray = (vector - last * by) / by[-1]
    result[-1] = last
    return result


def _lowest_in_cone(value: FloatArray, step: FloatArray, constant: float) -> float:
    """Minus one over the largest t with ``value + t * step`` in the second-order cone, 0 when every t is."""
    linear = float(value[-1] * step[-1] - value[:-1] @ step[:-1])
    square = float(step[-1] ** 2 - step[:-1] @ step[:-1])
    # never negative in exact arithmetic: the reversed Cauchy-Schwarz inequality of the cone
    inside = max(linear * linear - square * constant, 0.0)
    return min((linear - math.sqrt(inside)) / constant, 0.0)
