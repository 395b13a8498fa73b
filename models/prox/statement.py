r"""The prox step stated for the solvers: completed square, sums instead of means, rows that may be a part of all.

    min_{w, lam >= ||w_features||_*}  price * lam + <linear, w> + stiffness / 2 ||w - anchor||^2
                                      + sum_i max(0, 1 - m_i, 1 + m_i - flip * lam),      m_i = y_i (<w, x_i> + b)

Everything is N times the objective of the client step, so that a row's dual weights sum to one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.problem import FloatArray, TransportNorm


@dataclass(frozen=True)
class Statement:
    """A prox problem over the rows given.

    features : (n, P), labels : (n,) of -1/+1, linear and anchor : (D,) with D = P or P + 1 (intercept last).
    ``flip`` is the label flip cost; infinity leaves the flip piece out. ``price`` is N times the radius, less the
    flip cost of the rows that are not in ``features`` and are known to be flipped.
    """

    features: FloatArray
    labels: FloatArray
    linear: FloatArray
    anchor: FloatArray
    price: float
    flip: float
    stiffness: float
    norm: TransportNorm

    @property
    def has_intercept(self) -> bool:
        """Whether the last weight is an intercept."""
        return self.anchor.size > self.features.shape[1]

    def scores(self, weights: FloatArray) -> FloatArray:
        """Signed margins ``m_i``: one pass over the rows, shape (n,)."""
        n_features = self.features.shape[1]
        raw = self.features @ weights[:n_features]
        if self.has_intercept:
            raw += weights[-1]
        raw *= self.labels
        return raw

    def pull_back(self, coefficients: FloatArray) -> FloatArray:
        """``sum_i c_i y_i (x_i, 1)``: one pass over the rows, shape (D,)."""
        signed = coefficients * self.labels
        return self.spread(signed)

    def spread(self, coefficients: FloatArray) -> FloatArray:
        """``sum_i c_i (x_i, 1)``: one pass over the rows, shape (D,)."""
        result = coefficients @ self.features
        return np.append(result, coefficients.sum()) if self.has_intercept else result


def dual_norm_value(features: FloatArray, norm: TransportNorm) -> float:
    """Dual of the transport norm at the feature weights."""
    if features.size == 0:
        return 0.0
    if norm == "l1":
        return float(np.abs(features).max())
    if norm == "linf":
        return float(np.abs(features).sum())
    return float(np.sqrt(features @ features))


def transport_norm_value(vector: FloatArray, norm: TransportNorm) -> float:
    """Transport norm itself, which bounds the dual vector of the norm constraint."""
    if vector.size == 0:
        return 0.0
    if norm == "l1":
        return float(np.abs(vector).sum())
    if norm == "linf":
        return float(np.abs(vector).max())
    return float(np.sqrt(vector @ vector))
