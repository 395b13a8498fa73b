r"""What proves a prox answer: a minorant of the worst-case risk and the duality gap, from any dual weights.

The risk (FDR eq. 9, unbounded support) is ``r(u) = min_{lam >= ||u||_*} radius lam + mean_i max(0, 1-m_i, 1+m_i-flip lam)``.
Take weights ``a_i, b_i >= 0`` with ``a_i + b_i <= 1`` for the kept and the flipped piece of each row. A maximum is at
least any such combination of its entries, so for every u

    r(u) >= mean(a + b) + <q, u> + min_{lam >= ||u||_*} (radius - flip mean(b)) lam,     q = mean_i (b_i - a_i) y_i (x_i, 1).

With ``mu = radius - flip mean(b) >= 0`` the minimum is ``mu ||u||_* >= <z, u>`` for each z with transport norm at most
mu. So ``offset = mean(a + b)`` and ``slope = q + z`` bound r from below everywhere, wherever the weights came from:
`clip_weights` brings them into their set and `clip_norm_dual` does so for z, hence the bound never rests on how far a
solver got (it holds up to the rounding of the sums that form it).
"""

from __future__ import annotations

import math

import numpy as np

from models.problem import FloatArray, TransportNorm
from models.prox.statement import transport_norm_value


def clip_weights(keep: FloatArray, flip: FloatArray, budget: float) -> tuple[FloatArray, FloatArray]:
    """Nearest weights that are valid: at or above 0, at most 1 in sum, flipped mass within ``budget`` (N radius / flip)."""
    keep, flip = np.maximum(keep, 0.0), np.maximum(flip, 0.0)
    total = keep + flip
    over = total > 1.0
    if over.any():
        keep, flip = np.where(over, keep / total, keep), np.where(over, flip / total, flip)
    mass = float(flip.sum())
    if mass > budget:
        flip = flip * (budget / mass)
    return keep, flip


def clip_norm_dual(dual: FloatArray, bound: float, norm: TransportNorm) -> FloatArray:
    """Scale ``dual`` so that its transport norm is at most ``bound``."""
    size = transport_norm_value(dual, norm)
    if size <= bound:
        return dual
    # A hair inside, so that rounding of the scaling cannot leave it outside.
    return dual * (bound / size * (1.0 - 4.0 * np.finfo(float).eps))


def flip_budget(n_rows: int, radius: float, label_flip_cost: float) -> float:
    """Return the largest total weight of flipped pieces that a dual feasible point may have."""
    return n_rows * radius / label_flip_cost if math.isfinite(label_flip_cost) else 0.0
