r"""Sums of exponentials that neither overflow nor lose all digits: log-sum-exp, softmax and the logistic function.

The largest exponent is taken out first, so that every exponential is in [0, 1] and one of them is 1 (Higham, Higham and
Blanchard: Accurately computing the log-sum-exp and softmax functions, 2021).
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray


def log_sum_exp(values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """``log sum_j weights_j exp(values_j)`` along the last axis; without weights they are 1.

    values : (..., n), where -inf counts nothing and an inf gives inf. weights : (n,), at or above 0; what has weight 0
    counts nothing, whatever its value. Minus infinity where nothing counts.
    """
    if weights is not None:
        values = np.where(weights > 0, values, -np.inf)
    top = values.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    parts = np.exp(values - top)
    with np.errstate(divide="ignore"):  # the log of 0 is the answer where nothing counts
        total = np.log(parts.sum(axis=-1) if weights is None else parts @ weights)
    return np.asarray(total + top[..., 0])


def softmax(scores: FloatArray) -> FloatArray:
    """``exp(s_k) / sum_j exp(s_j)`` along the last axis of finite scores (..., C)."""
    parts = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(parts / parts.sum(axis=-1, keepdims=True))


def logistic(z: FloatArray) -> FloatArray:
    """``1 / (1 + exp(-z))``, of any shape, with all digits at both ends."""
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, small) / (1.0 + small))
