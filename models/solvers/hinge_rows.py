r"""Rows in an interior point, with every row's own variable eliminated in closed form.

Row i has a loss s_i that costs ``share_i`` and three constraints, ``s >= 0``, ``s >= 1 - m`` and
``s >= 1 + m - flip lam``, with duals that sum to the share. With d1, d2, d3 their dual-over-slack ratios and d their
sum, eliminating s leaves the row with curvature ``(d1 d2 + d1 d3 + 4 d2 d3) / d`` in its margin, ``d3 (d1 + d2) / d``
in ``flip lam`` and ``-d3 (d1 + 2 d2) / d`` between them: no subtraction, so nothing cancels when the iterates near
their limits.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

Multiplier = FloatArray | float
"""Transport multiplier that the rows of a site meet; (G,) for the rows of several."""
Place = int | slice
"""Where it stands among the unknowns."""

_BLOCK_VALUES = 1 << 16  # values of the rows read at a time: they are still in the cache when they are read again


class HingeRows:
    """Slacks and duals (k, n) of one site's rows and their k pieces during an interior point run; their Newton steps.

    Parameters
    ----------
    rows : (n, D), signed rows ``y_i (x_i, 1)``.
    flip : label flip cost over the unit of the multiplier; infinity leaves the third piece out.
    share : what a row's loss costs, one number for all or (n,).
    """

    slack: FloatArray
    dual: FloatArray
    _step_slack: FloatArray
    _step_dual: FloatArray

    def __init__(self, rows: FloatArray, flip: float, share: FloatArray | float = 1.0) -> None:
        self.rows, self.flip, self.can_flip, self.share = rows, flip, math.isfinite(flip), share

    def centre(self, margins: FloatArray, multiplier: Multiplier, target: float) -> None:
        """Start near complementarity ``target``, the duals summing to the share."""
        slack = np.empty((3 if self.can_flip else 2, margins.size))
        slack[0] = 0.0
        np.subtract(margins, 1.0, out=slack[1])
        if self.can_flip:
            np.subtract(self._paid(multiplier) - 1.0, margins, out=slack[2])
        # minus the pieces so far; the loss sits above the highest piece by so much that the products are even
        slack -= slack.min(axis=0) - 1.5 * target
        dual = target / slack
        dual /= dual.sum(axis=0) / self.share
        self.slack, self.dual = slack, dual

    def _paid(self, multiplier: Multiplier) -> Multiplier:
        """What a flip of each row costs at a multiplier."""
        return self.flip * multiplier

    def _collected(self, values: FloatArray) -> Multiplier:
        """Sum of values (n,) times the rows' flip costs."""
        return self.flip * float(values.sum())

    def _add_price(self, matrix: FloatArray, place: Place, cross: FloatArray, own: FloatArray) -> None:
        """Add what the elimination leaves in the multiplier (``own``) and between it and the margins (``cross``)."""
        matrix[place, : self.rows.shape[1]] -= self.flip * (cross @ self.rows)
        matrix[place, place] += self.flip**2 * float(own.sum())

    @property
    def flipped(self) -> Multiplier:
        """What the flips take off the price of the multiplier."""
        return self._collected(self.dual[2]) if self.can_flip else 0.0

    def pull(self) -> FloatArray:
        """What the duals push on the weights, (D,)."""
        force = self.dual[1] - self.dual[2] if self.can_flip else self.dual[1]
        return np.asarray(force @ self.rows)

    def complementarity(self) -> float:
        """Inner product of slacks and duals."""
        return float(np.vdot(self.slack, self.dual))

    def add_curvature(self, matrix: FloatArray, place: Place) -> None:
        """Add the rows' part to the lower triangle, the weights first and the multiplier at ``place``."""
        d = self.rows.shape[1]
        self._ratio = ratio = self.dual / self.slack
        if self.can_flip:
            d1, d2, d3 = ratio
            both = d1 + d2
            self._total = total = both + d3
            self._share = d3 / total
            self._skew = (d2 - d3) / total
            margin = (d1 * (d2 + d3) + 4.0 * d2 * d3) / total
            self._add_price(matrix, place, self._share * (both + d2), self._share * both)
        else:
            self._total = ratio[0] + ratio[1]
            self._skew = ratio[1] / self._total
            margin = ratio[0] * self._skew
        add_weighted_gram(self.rows, margin, matrix[:d, :d])

    def add_right_hand_side(self, right: FloatArray, place: Place, target: float, correction: float) -> None:
        """Add the rows' part for complementarity ``target``, less ``correction`` times the second-order term."""
        if target > 0.0:
            self._constant = target - (correction * self._step_slack) * self._step_dual
            self._constant /= self.slack
            self._constant -= self.dual
            self._need = self._constant.sum(axis=0) + (self.dual.sum(axis=0) - self.share)
        else:
            self._constant, self._need = -self.dual, -self.share
        push = self._constant[1] - self._skew * self._need
        if self.can_flip:
            push -= self._constant[2]
            right[place] += self._collected(self._constant[2] - self._share * self._need)
        right[: self.rows.shape[1]] += push @ self.rows

    def set_step(self, weights: FloatArray, multiplier: Multiplier) -> float:
        """Derive the steps of slacks and duals from those of the others; return the most negative relative change."""
        margins = self.rows @ weights
        values = self._need / self._total
        values -= self._skew * margins
        self._step_slack = np.empty_like(self.slack)
        if self.can_flip:
            paid = self._paid(multiplier)
            values -= paid * self._share
            np.subtract(values, margins, out=self._step_slack[2])
            self._step_slack[2] += paid
        self._step_slack[0] = values
        np.add(values, margins, out=self._step_slack[1])
        self._step_dual = self._constant - self._ratio * self._step_slack
        return min(float((self._step_slack / self.slack).min()), float((self._step_dual / self.dual).min()), 0.0)

    def curved_change(self) -> float:
        """Inner product of the steps of slacks and duals."""
        return float(np.vdot(self._step_slack, self._step_dual))

    def move(self, length: float) -> None:
        """Move slacks and duals by ``length`` of the step."""
        self.slack += length * self._step_slack
        self.dual += length * self._step_dual


class SiteRows(HingeRows):
    """Rows of several sites that can all flip labels, ``site`` (n,) being the index of each row's multiplier, rising.

    ``costs`` (G,) are the flip costs over the units of the multipliers.
    """

    def __init__(self, rows: FloatArray, costs: FloatArray, share: FloatArray, site: NDArray[np.intp]) -> None:
        super().__init__(rows, 1.0, share)
        self._site, self._costs = site, costs

    def _paid(self, multiplier: Multiplier) -> Multiplier:
        return np.asarray((self._costs * multiplier)[self._site])

    def _collected(self, values: FloatArray) -> Multiplier:
        return np.asarray(self._costs * np.bincount(self._site, values, self._costs.size))

    def _add_price(self, matrix: FloatArray, place: Place, cross: FloatArray, own: FloatArray) -> None:
        ends = np.searchsorted(self._site, np.arange(self._costs.size + 1))
        sums = [cross[start:end] @ self.rows[start:end] for start, end in pairwise(ends)]
        matrix[place, : self.rows.shape[1]] -= self._costs[:, None] * np.stack(sums)
        matrix[place, place] += np.diag(self._costs * self._collected(own))


def add_weighted_gram(rows: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Add ``sum_i weights_i row_i row_i'`` to ``out`` (D, D): one pass over the rows (n, D), no second copy."""
    block = max(_BLOCK_VALUES // rows.shape[1], 64)
    if rows.shape[0] <= block:
        out += (rows * weights[:, None]).T @ rows
        return
    for start in range(0, rows.shape[0], block):
        part = rows[start : start + block]
        out += (part * weights[start : start + block, None]).T @ part
