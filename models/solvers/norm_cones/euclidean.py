"""Dual of the transport norm l2, which is its own dual."""

from __future__ import annotations

import math

import numpy as np

from models.basics import FloatArray
from models.solvers.norm_cones.cone import NormCone
from models.solvers.second_order_cone import ConeScaling, jordan_product, lowest_change


class EuclideanCone(NormCone):
    """``multiplier >= ||w||_2``: one second-order cone with Nesterov-Todd scaling (``solvers.second_order_cone``)."""

    def __init__(self, features: FloatArray, floor: float, price: float, target: float) -> None:
        self.degree = 1
        half = 0.5 * target / price
        radius = math.sqrt(float(features @ features))
        self.multiplier = max(half + math.sqrt(half * half + radius * radius), floor)
        room = max(self.multiplier - radius, half * half / self.multiplier)
        self._slack: FloatArray = np.append(self.multiplier, features)
        self._dual: FloatArray = np.append(self.multiplier, -features)
        self._dual *= target / (room * (self.multiplier + radius))
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
        self._scaling = ConeScaling.at(self._slack, self._dual)
        axis, inverse = self._scaling.axis, 1.0 / self._scaling.size**2
        p, size = axis.size - 1, matrix.shape[0]
        rank_one = (2.0 * inverse * axis)[:, None] * axis[1:]
        matrix[:p, :p] += rank_one[1:]
        matrix.ravel()[: p * size : size + 1] += inverse
        matrix[-1, :p] += rank_one[0]
        matrix[-1, -1] += inverse * (2.0 * axis[0] * axis[0] - 1.0)

    def shift(self, target: float, correction: float) -> FloatArray:
        """See :class:`NormCone`."""
        self._constant: FloatArray = -self._dual
        if target > 0.0:
            # (W^-1 ds) o (W dz) of the predictor, where W dz = -point - W^-1 ds
            turned = self._scaling.unscale(self._step_slack)
            wanted = correction * jordan_product(turned, turned + self._scaling.point)
            wanted[0] += target
            self._constant += self._scaling.unscale(self._scaling.divide(wanted))
        return self._constant

    def set_step(self, step: FloatArray) -> float:
        """See :class:`NormCone`."""
        self._step_slack = step
        self._step_dual = self._constant - self._scaling.unscale_twice(step)
        return min(
            lowest_change(self._slack, step, self._scaling.of_slack),
            lowest_change(self._dual, self._step_dual, self._scaling.of_dual),
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
        self._slack = np.append(multiplier, features)
        return True
