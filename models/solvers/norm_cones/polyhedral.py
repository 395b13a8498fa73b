"""Duals of the transport norms l1 and linf: norms whose balls have corners, as linear constraints."""

from __future__ import annotations

import math

import numpy as np

from models.basics import FloatArray
from models.solvers.norm_cones.cone import NormCone


class _PairCone(NormCone):
    """Two linear constraints for each weight: stacked rows (2, P) of ``bound - w >= 0`` and ``bound + w >= 0``."""

    _slack: FloatArray
    _dual: FloatArray
    _step_slack: FloatArray
    _step_dual: FloatArray
    _ratio: FloatArray
    _constant: FloatArray

    def _start(self, slack: FloatArray, target: float) -> None:
        """Slacks, and duals at complementarity ``target``."""
        self._slack, self._dual = slack, target / slack
        self._step_slack, self._step_dual = np.zeros_like(slack), np.zeros_like(slack)

    def complementarity(self) -> float:
        """See :class:`NormCone`."""
        return float(np.vdot(self._slack, self._dual))

    def _change(self, target: float, correction: float) -> FloatArray:
        """What complementarity ``target`` asks of the duals beyond their vanishing, (2, P)."""
        return np.asarray((target - correction * self._step_slack * self._step_dual) / self._slack)

    def _set_pairs(self, bounds: FloatArray | float, features: FloatArray) -> float:
        """Steps of slacks and duals from those of the bounds and the weights; the most negative relative change."""
        np.subtract(bounds, features, out=self._step_slack[0])
        np.add(bounds, features, out=self._step_slack[1])
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


class MaxNormCone(_PairCone):
    """``multiplier >= max |w_j|`` as the 2P linear constraints ``multiplier -+ w_j >= 0``."""

    def __init__(self, features: FloatArray, floor: float, price: float, target: float) -> None:
        self.degree = 2 * features.size
        self.multiplier = max(floor, float(np.abs(features).max()) + 1.5 * target / price)
        self._start(np.stack((self.multiplier - features, self.multiplier + features)), target)
        self._dual *= min(price / float(self._dual.sum()), 1.0)

    @staticmethod
    def _fold(pair: FloatArray) -> FloatArray:
        folded = np.empty(pair.shape[1] + 1)
        folded[0] = pair.sum()
        np.subtract(pair[1], pair[0], out=folded[1:])
        return folded

    def pull(self) -> FloatArray:
        """See :class:`NormCone`."""
        return self._fold(self._dual)

    def add_curvature(self, matrix: FloatArray) -> None:
        """See :class:`NormCone`."""
        self._ratio = self._dual / self._slack
        size = matrix.shape[0]
        p = self._ratio.shape[1]
        matrix.ravel()[: p * size : size + 1] += self._ratio[0] + self._ratio[1]
        folded = self._fold(self._ratio)
        matrix[-1, :p] += folded[1:]
        matrix[-1, -1] += folded[0]

    def shift(self, target: float, correction: float) -> FloatArray:
        """See :class:`NormCone`."""
        self._constant = -self._dual
        if target > 0.0:
            self._constant += self._change(target, correction)
        return self._fold(self._constant)

    def set_step(self, step: FloatArray) -> float:
        """See :class:`NormCone`."""
        return self._set_pairs(float(step[0]), step[1:])

    def resettle(self, features: FloatArray, multiplier: float) -> bool:
        """See :class:`NormCone`."""
        slack = np.stack((multiplier - features, multiplier + features))
        if not float(slack.min()) > 0.0:
            return False
        self._slack = slack
        return True


class SumNormCone(_PairCone):
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
        self._start(np.stack((np.where(positive, small, large), np.where(positive, large, small))), target)
        self._top_dual = target / self._top_slack
        self._step_top_slack = self._step_top_dual = 0.0

    def pull(self) -> FloatArray:
        """See :class:`NormCone`."""
        return np.append(self._top_dual, self._dual[1] - self._dual[0])

    def complementarity(self) -> float:
        """See :class:`NormCone`."""
        return super().complementarity() + self._top_slack * self._top_dual

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
        change, top = np.zeros_like(self._slack), 0.0
        if target > 0.0:
            change = self._change(target, correction)
            top = (target - correction * self._step_top_slack * self._step_top_dual) / self._top_slack
        self._constant = change - self._dual
        self._top_constant = top - self._top_dual
        # What the bounds' own equation, "duals of t - w and t + w sum to the top's", leaves for the bounds.
        self._push = (change[0] + change[1] - top) / self._total
        carried = self._coupling * float(self._push.sum())
        shift = np.empty(self._push.size + 1)
        shift[0] = self._top_constant + carried
        shift[1:] = self._constant[1] - self._constant[0] + self._lean * (carried - self._total * self._push)
        return shift

    def set_step(self, step: FloatArray) -> float:
        """See :class:`NormCone`."""
        multiplier, features = float(step[0]), step[1:]
        bounds = self._push - self._lean * features
        bounds += (self._coupling * (multiplier - float(bounds.sum()))) / self._total
        lowest = self._set_pairs(bounds, features)
        self._step_top_slack = multiplier - float(bounds.sum())
        self._step_top_dual = self._top_constant - self._top_dual / self._top_slack * self._step_top_slack
        return min(
            lowest,
            _lowest_ratio(self._top_slack, self._step_top_slack),
            _lowest_ratio(self._top_dual, self._step_top_dual),
        )

    def curved_change(self) -> float:
        """See :class:`NormCone`."""
        return super().curved_change() + self._step_top_slack * self._step_top_dual

    def move(self, length: float) -> None:
        """See :class:`NormCone`."""
        super().move(length)
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


def _lowest_ratio(value: float, step: float) -> float:
    """Relative change of a positive scalar, 0 if it grows."""
    return min(step / value, 0.0) if value > 0.0 else -math.inf
