"""A site's rows as the solvers read them: every product with all of them is one pass over the data, and is counted."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

Index = NDArray[np.intp]


class SiteRows:
    """Rows ``y_i (x_i, 1)`` of a site, never formed as a whole unless all of them are asked for.

    ``passes`` is how many times all rows have been read.
    """

    def __init__(self, features: FloatArray, labels: FloatArray, has_intercept: bool) -> None:
        self._features = features
        self._labels = labels
        self._intercept = has_intercept
        self.count, self.n_features = features.shape
        self.passes = 0

    def every(self, step: int) -> SiteRows:
        """Every ``step``-th row, without a copy; what is read of it does not count as a pass."""
        return SiteRows(self._features[::step], self._labels[::step], self._intercept)

    def are_finite(self) -> bool:
        """Whether every feature is a finite number: one pass, no copy."""
        self.passes += 1
        with np.errstate(invalid="ignore", over="ignore"):
            return math.isfinite(float(self._features.sum()))

    def margins(self, weights: FloatArray) -> FloatArray:
        """``y_i (<w, x_i> + b)``, shape (N,): one pass."""
        self.passes += 1
        result: FloatArray = self._features @ weights[: self.n_features]
        if self._intercept:
            result += weights[-1]
        result *= self._labels
        return result

    def combine(self, coefficients: FloatArray) -> FloatArray:
        """``sum_i c_i y_i (x_i, 1)``, shape (D,): one pass."""
        self.passes += 1
        signed = coefficients * self._labels
        result: FloatArray = signed @ self._features
        return np.append(result, signed.sum()) if self._intercept else result

    def gather(self, index: Index | slice) -> FloatArray:
        """Copy of the rows ``index``, signed, shape (n, D)."""
        features, labels = self._features[index], self._labels[index]
        if isinstance(index, slice) and index == slice(None):
            self.passes += 1
        rows = np.empty((labels.size, self.n_features + int(self._intercept)))
        np.multiply(features, labels[:, None], out=rows[:, : self.n_features])
        if self._intercept:
            rows[:, -1] = labels
        return rows
