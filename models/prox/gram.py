"""Weighted Gram matrices of the rows, block by block: one pass, no copy of the data."""

from __future__ import annotations

import numpy as np

from models.problem import FloatArray

_BLOCK_VALUES = 1 << 15  # values in a block: 256 kB, so that it is still in the cache when it is read the second time


def weighted_gram(features: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Write ``sum_i weights_i x_i x_i'`` to ``out`` (P, P): one pass over the rows, features (n, P), weights (n,)."""
    n_rows, n_features = features.shape
    block = max(_BLOCK_VALUES // max(n_features, 1), 64)
    if n_rows <= block:
        np.matmul((features * weights[:, None]).T, features, out=out)
        return
    out[:] = 0.0
    for start in range(0, n_rows, block):
        rows = features[start : start + block]
        out += (rows * weights[start : start + block, None]).T @ rows
