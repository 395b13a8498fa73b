"""Dual of the transport norm linf."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.prox.hinge.cones.cone import NormCone, lowest_ratio


class SumNormCone(NormCone):
    r"""``multiplier >= sum |w_j|`` through bounds ``t_j >= |w_j|`` and ``multiplier >= sum t_j``, the t_j eliminated.

    Rows of the stacked arrays are ``t - w`` and ``t + w``; the scalar constraint ("top") is kept apart. With u, v the
    dual-over-slack ratios of the two rows, d that of the top, ``b = (v - u) / (u + v)`` and
    ``g = d / (1 + d sum 1 / (u + v))``, eliminating t leaves the curvature ``diag(4 u v / (u + v)) + g (b, 1)(b, 1)'``.
    """

    def __init__(self, features: FloatArray, floor: float, price: float, target: float) -> None:
        self.degree = 2 * features.size + 1
        least = target / price
        size = np.abs(features)
        root = np.sqrt(least * least + size * size)
        bounds = least + root
        small = least + least * (least / (root + size))  # bounds - |w| without cancelling
        self._top_slack = least
        self.multiplier = float(bounds.sum()) + least
        if self.multiplier < floor:
            share = (floor - self.multiplier) / (features.size + 1)
            bounds += share
            small += share
            self._top_slack += share
            self.multiplier = floor
        large = bounds + size
        positive = features > 0.0
        self._slack = np.stack((np.where(positive, small, large), np.where(positive, large, small)))
        self._dual = target / self._slack
        self._top_dual = target / self._top_slack
        self._step_slack = np.zeros_like(self._slack)
        self._step_dual = np.zeros_like(self._slack)
        self._step_top_slack = self._step_top_dual = 0.0

    def pull(self) -> FloatArray:
        """See :class:`NormCone`."""
        return np.append(self._dual[1] - self._dual[0], self._top_dual)

    def complementarity(self) -> float:
        """See :class:`NormCone`."""
        return float(np.vdot(self._slack, self._dual)) + self._top_slack * self._top_dual

    def add_curvature(self, matrix: FloatArray) -> None:
        """See :class:`NormCone`."""
        self._ratio = self._dual / self._slack
        down, up = self._ratio
        self._total = down + up
        self._lean = (up - down) / self._total
        top = self._top_dual / self._top_slack
        self._coupling = top / (1.0 + top * float((1.0 / self._total).sum()))
        size, p = matrix.shape[0], down.size
        row = self._coupling * self._lean
        matrix[:p, :p] += row[:, None] * self._lean
        matrix.ravel()[: p * size : size + 1] += 4.0 * down * up / self._total
        matrix[-1, :p] += row
        matrix[-1, -1] += self._coupling

    def shift(self, target: float, correction: float) -> FloatArray:
        """See :class:`NormCone`."""
        if target > 0.0:
            change = (target - correction * self._step_slack * self._step_dual) / self._slack
            top = (target - correction * self._step_top_slack * self._step_top_dual) / self._top_slack
        else:
            change = np.zeros_like(self._slack)
            top = 0.0
        self._constant = change - self._dual
        self._top_constant = top - self._top_dual
        # What the bounds' own equation, "duals of t - w and t + w sum to the top's", leaves for the bounds.
        self._push = (change[0] + change[1] - top) / self._total
        carried = self._coupling * float(self._push.sum())
        shift = np.empty(self._push.size + 1)
        shift[:-1] = self._constant[1] - self._constant[0] + self._lean * (carried - self._total * self._push)
        shift[-1] = self._top_constant + carried
        return shift

    def set_step(self, step: FloatArray) -> float:
        """See :class:`NormCone`."""
        features = step[:-1]
        bounds = self._push - self._lean * features
        bounds += (self._coupling * (float(step[-1]) - float(bounds.sum()))) / self._total
        np.subtract(bounds, features, out=self._step_slack[0])
        np.add(bounds, features, out=self._step_slack[1])
        self._step_dual = self._constant - self._ratio * self._step_slack
        self._step_top_slack = float(step[-1]) - float(bounds.sum())
        self._step_top_dual = self._top_constant - self._top_dual / self._top_slack * self._step_top_slack
        lowest = min((self._step_slack / self._slack).min(), (self._step_dual / self._dual).min())
        return min(
            float(lowest),
            lowest_ratio(self._top_slack, self._step_top_slack),
            lowest_ratio(self._top_dual, self._step_top_dual),
        )

    def curved_change(self) -> float:
        """See :class:`NormCone`."""
        return float(np.vdot(self._step_slack, self._step_dual)) + self._step_top_slack * self._step_top_dual

    def move(self, length: float) -> None:
        """See :class:`NormCone`."""
        self._slack += length * self._step_slack
        self._dual += length * self._step_dual
        self._top_slack += length * self._step_top_slack
        self._top_dual += length * self._step_top_dual

    def resettle(self, features: FloatArray, multiplier: float) -> bool:
        """See :class:`NormCone`."""
        bounds = 0.5 * (self._slack[0] + self._slack[1])
        slack = np.stack((bounds - features, bounds + features))
        top = multiplier - float(bounds.sum())
        if not (float(slack.min()) > 0.0 and top > 0.0):
            return False
        self._slack, self._top_slack = slack, top
        return True
