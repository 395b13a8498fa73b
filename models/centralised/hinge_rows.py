r"""Rows of all sites in one interior point: every row's own variable eliminated in closed form.

Row i of site g carries its weight c_i = a_g / N_g and three constraints on its loss s_i,

    s_i >= 0,   s_i >= 1 - m_i,   s_i >= f_i (1 + m_i - kappa_g lam_g) - (1 - f_i),

f_i = 1 where the site can buy label flips and 0 where it cannot (the third is idle then). A row's duals sum to c_i.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray


class PooledRows:
    """Slacks and duals (3, N) of the row constraints at weights zero, and their Newton steps.

    signed : (N, D) rows ``y_i (x_i, 1)``. share : (N,) the c_i. flips : (N,) the f_i. cost : (N,) ``f_i kappa_g``.
    site : (N,) index of the site's multiplier (any where f_i is 0). multipliers : (G,).
    """

    def __init__(
        self,
        signed: FloatArray,
        share: FloatArray,
        flips: FloatArray,
        cost: FloatArray,
        site: NDArray[np.intp],
        multipliers: FloatArray,
    ) -> None:
        self.signed, self.share, self.flips, self.cost, self.site = signed, share, flips, cost, site
        self.n_sites = multipliers.shape[0]
        third = flips * (1.0 - cost * self._spread(multipliers)) - (1.0 - flips)
        self.loss = np.maximum(third, 1.0) + 1.0
        self.slack = np.stack([self.loss, self.loss - 1.0, self.loss - third])
        self.dual = 1.0 / self.slack
        self.dual *= share / self.dual.sum(axis=0)
        self.d_slack = np.zeros_like(self.slack)
        self.d_dual = np.zeros_like(self.dual)

    def _spread(self, multipliers: FloatArray) -> FloatArray:
        return multipliers[self.site] if self.n_sites else np.zeros(self.share.shape[0])

    def _collect(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.site, values, self.n_sites)[: self.n_sites], dtype=np.float64)

    def pull(self) -> tuple[FloatArray, FloatArray]:
        """What the duals push on the weights (D,) and on the multipliers (G,)."""
        force = self.dual[1] - self.flips * self.dual[2]
        return force @ self.signed, self._collect(self.cost * self.dual[2])

    def complementarity(self) -> float:
        """Inner product of slacks and duals."""
        return float(np.vdot(self.slack, self.dual))

    def add_curvature(self, matrix: FloatArray) -> None:
        """Add the rows' part to the normal matrix in (weights, multipliers, ...)."""
        self.ratio = self.dual / self.slack
        self.total = self.ratio.sum(axis=0)
        d1, d2, d3 = self.ratio
        f, k, d = self.flips, self.cost, self.total
        own = (d1 * d2 + d1 * d3 * f * f + d2 * d3 * (1.0 + f) ** 2) / d
        cross = -k * d3 * (d1 * f + d2 * (1.0 + f)) / d
        price = k * k * d3 * (d1 + d2) / d
        size = self.signed.shape[1]
        matrix[:size, :size] += (self.signed * own[:, None]).T @ self.signed
        for g in range(self.n_sites):
            here = (self.site == g) & (k > 0)
            column = cross[here] @ self.signed[here]
            matrix[:size, size + g] += column
            matrix[size + g, :size] += column
            matrix[size + g, size + g] += float(price[here].sum())

    def right_hand_side(self, target: float, correction: float) -> tuple[FloatArray, FloatArray]:
        """Right-hand sides for the weights (D,) and the multipliers (G,) at complementarity ``target``."""
        wanted = target - self.slack * self.dual
        if correction > 0.0:
            wanted -= correction * self.d_slack * self.d_dual
        self.constant = wanted / self.slack
        self.need = (self.constant.sum(axis=0) - (self.share - self.dual.sum(axis=0))) / self.total
        r, f, k = self.ratio, self.flips, self.cost
        margin = self.constant[1] - f * self.constant[2] - (r[1] - f * r[2]) * self.need
        flipped = k * (self.constant[2] - r[2] * self.need)
        return margin @ self.signed, self._collect(flipped)

    def set_step(self, d_weights: FloatArray, d_multipliers: FloatArray) -> float:
        """Derive the step of losses, slacks and duals; return the longest one that stays inside."""
        r, f = self.ratio, self.flips
        margin = self.signed @ d_weights
        paid = self.cost * self._spread(d_multipliers)
        self.d_loss = self.need - ((r[1] - f * r[2]) * margin + r[2] * paid) / self.total
        self.d_slack = np.stack([self.d_loss, self.d_loss + margin, self.d_loss - f * margin + paid])
        self.d_dual = self.constant - r * self.d_slack
        return min(longest(self.slack, self.d_slack), longest(self.dual, self.d_dual))

    def curved_change(self) -> float:
        """Inner product of the steps of slacks and duals."""
        return float(np.vdot(self.d_slack, self.d_dual))

    def move(self, length: float) -> None:
        """Take the step."""
        self.loss = self.loss + length * self.d_loss
        self.slack = self.slack + length * self.d_slack
        self.dual = self.dual + length * self.d_dual


def longest(value: FloatArray, step: FloatArray) -> float:
    """Largest t with ``value + t step >= 0``."""
    worst = float((step / value).min(initial=0.0))
    return -1.0 / worst if worst < 0.0 else math.inf
