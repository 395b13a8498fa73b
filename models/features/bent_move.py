r"""The least move that loses a lead of a score which bends as a quadratic does: near a row it is nearly linear.

With ``f(x + d) >= f(x) - sum_j B_j |d_j| - |d'^T A d'|`` for all moves d, where ``|d'_j| <= |d_j|``, a lead is not lost
by a move of length r as long as ``a r + c r^2`` is below it, ``a = ||B||_*`` and

    c = ||A||_2 in l2,      max_ij |A_ij| in l1,      sum_ij |A_ij| in linf,

so the root of ``a r + c r^2 = lead`` is a lower bound of the least move. It is exact to first order: for a small lead
the bend has no say.
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.geometry.norms import DUAL_NORM, vector_norm


def bent_move(slopes: FloatArray, bends: FloatArray, lead: FloatArray, transport_norm: TransportNorm) -> FloatArray:
    """Lower bound (n, R) of slopes B (n, R, P) at or above 0, bends A (R, P, P), symmetric, and leads (n, R).

    Infinite where neither slopes nor bends are there, and 0 where the lead is not above 0.
    """
    steep, bend = vector_norm(slopes, DUAL_NORM[transport_norm]), _bend(bends, transport_norm)[None]
    lead = np.maximum(lead, 0.0)
    # The root without a difference of two near numbers: 2 lead / (a + sqrt(a^2 + 4 c lead)).
    whole = steep + np.sqrt(steep**2 + 4.0 * bend * lead)
    still = np.where(lead > 0, np.inf, 0.0)
    return np.asarray(np.divide(2.0 * lead, whole, out=still, where=whole > 0))


def _bend(bends: FloatArray, transport_norm: TransportNorm) -> FloatArray:
    """The constant c (R,) of the formula above."""
    if transport_norm == "l1":
        return np.asarray(np.abs(bends).max(axis=(1, 2)))
    if transport_norm == "linf":
        return np.asarray(np.abs(bends).sum(axis=(1, 2)))
    return np.asarray(np.linalg.norm(bends, 2, axis=(1, 2)))
