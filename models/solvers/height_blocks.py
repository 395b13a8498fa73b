r"""Rows that hold up one height each, about the weighted mean of their height: their product with themselves.

Of the rows x_j (m, k), by height, with weights s_j: the weight ``total_g`` and the mean ``mean_g`` of each height, and
the lower triangle of ``sum_j s_j (x_j - mean_g) (x_j - mean_g)'``. That product is most of a step of the interior point
method (``models.solvers.arrow_rows``). Rough ones take the rows in single precision, but for those so heavy that what
they lose counts beside the k-th heaviest, which is about what holds the weakest direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from models.basics import FloatArray

_SINGLE = 1e4
"""Weight over the k-th largest up to which 7 digits of a row's part in the product are enough for a step.

What such a step leaves is in the residuals of the next."""
_BLOCK = 2000
"""Entries of the rows of one height, on average, from which one is taken after the other, each in the nearest cache."""


@dataclass(frozen=True)
class HeightBlocks:
    """``wide`` (m, k), sorted by height; ``firsts`` (G,): first row of each height."""

    wide: FloatArray
    firsts: NDArray[np.intp]

    def product(self, weights: FloatArray, roughly: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weight (G,) and mean (G, k) of the rows of each height, and the lower triangle (k, k) about these."""
        roots, total = np.sqrt(weights), np.add.reduceat(weights, self.firsts)
        if not roughly:
            means = self._centre(weights, total, roots, self._rows)
            return total, means, np.asarray(dsyrk(1.0, self._rows.T, lower=True))
        (m, k) = self.wide.shape
        heavy = np.flatnonzero(weights > _SINGLE * np.partition(weights, max(m - k, 0))[max(m - k, 0)])
        light = roots.copy()
        light[heavy] = 0.0
        means = self._centre(weights, total, light, self._rough_rows)
        product = np.matmul(self._rough_rows.T, self._rough_rows, out=self._rough_product).T
        if heavy.size:
            product = product.astype(np.float64)
            height = np.searchsorted(self.firsts, heavy, side="right") - 1
            rows = (self.wide[heavy] - means[height]) * roots[heavy, None]
            product = dsyrk(1.0, rows.T, beta=1.0, c=product, lower=True, overwrite_c=True)
        return total, means, np.asarray(product)

    def _centre(
        self, weights: FloatArray, total: FloatArray, roots: FloatArray, into: NDArray[np.floating]
    ) -> FloatArray:
        """Means (G, k); the rows (m, k) about these times the roots go ``into`` an array of either precision."""
        (m, k), ends, factors = self.wide.shape, np.append(self.firsts, self.wide.shape[0]), roots.astype(into.dtype)
        if m * k < _BLOCK * total.shape[0]:
            means = np.add.reduceat(self.wide * weights[:, None], self.firsts, axis=0)
            means /= total[:, None]
            into[:] = self.wide - np.repeat(means, np.diff(ends), axis=0)
            into *= factors[:, None]
            return np.asarray(means)
        means = np.empty((total.shape[0], k))
        for g, (start, end) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
            means[g] = weights[start:end] @ self.wide[start:end] / total[g]
            rows = np.subtract(self.wide[start:end], means[g], out=into[start:end], casting="same_kind")
            rows *= factors[start:end, None]
        return means

    @cached_property
    def _rows(self) -> FloatArray:
        """Room that every step takes again."""
        return np.empty(self.wide.shape)

    @cached_property
    def _rough_rows(self) -> NDArray[np.float32]:
        """The same in single precision."""
        return np.empty(self.wide.shape, dtype=np.float32)

    @cached_property
    def _rough_product(self) -> NDArray[np.float32]:
        """Room for their product."""
        return np.empty((self.wide.shape[1],) * 2, dtype=np.float32)
