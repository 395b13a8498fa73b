"""Dual of the transport norm l1."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.prox.hinge.cones.cone import NormCone


class MaxNormCone(NormCone):
    """``multiplier >= max |w_j|`` as the 2P linear constraints ``multiplier -+ w_j >= 0``."""

    def __init__(self, features: FloatArray, floor: float, price: float, target: float) -> None:
        self.degree = 2 * features.size
        self.multiplier = max(floor, float(np.abs(features).max()) + 1.5 * target / price)
        self._slack = np.stack((self.multiplier - features, self.multiplier + features))
        self._dual = target / self._slack
        self._dual *= min(price / float(self._dual.sum()), 1.0)
        self._step_slack = np.zeros_like(self._slack)
        self._step_dual = np.zeros_like(self._slack)

    @staticmethod
    def _fold(pair: FloatArray) -> FloatArray:
        folded = np.empty(pair.shape[1] + 1)
        np.subtract(pair[1], pair[0], out=folded[:-1])
        folded[-1] = pair.sum()
        return folded

    def pull(self) -> FloatArray:
        """See :class:`NormCone`."""
        return self._fold(self._dual)

    def complementarity(self) -> float:
        """See :class:`NormCone`."""
        return float(np.vdot(self._slack, self._dual))

    def add_curvature(self, matrix: FloatArray) -> None:
        """See :class:`NormCone`."""
        self._ratio = self._dual / self._slack
        size = matrix.shape[0]
        p = self._ratio.shape[1]
        matrix.ravel()[: p * size : size + 1] += self._ratio[0] + self._ratio[1]
        folded = self._fold(self._ratio)
        matrix[-1, :p] += folded[:-1]
        matrix[-1, -1] += folded[-1]

    def shift(self, target: float, correction: float) -> FloatArray:
        """See :class:`NormCone`."""
        if target > 0.0:
            self._constant = (target - correction * self._step_slack * self._step_dual) / self._slack - self._dual
        else:
            self._constant = -self._dual
        return self._fold(self._constant)

    def set_step(self, step: FloatArray) -> float:
        """See :class:`NormCone`."""
        np.subtract(step[-1], step[:-1], out=self._step_slack[0])
        np.add(step[-1], step[:-1], out=self._step_slack[1])
        self._step_dual = self._constant - self._ratio * self._step_slack
        lowest = min((self._step_slack / self._slack).min(), (self._step_dual / self._dual).min())
        return min(float(lowest), 0.0)

    def curved_change(self) -> float:
        """See :class:`NormCone`."""
        return float(np.vdot(self._step_slack, self._step_dual))

    def move(self, length: float) -> None:
        """See :class:`NormCone`."""
        self._slack += length * self._step_slack
        self._dual += length * self._step_dual

    def resettle(self, features: FloatArray, multiplier: float) -> bool:
        """See :class:`NormCone`."""
        slack = np.stack((multiplier - features, multiplier + features))
        if not float(slack.min()) > 0.0:
            return False
        self._slack = slack
        return True
