"""Where each row's loss ``max(0, 1 - m, 1 + m - flip lam)`` lies: its piece, how far the next kink is, the best lam."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

_CLEARLY = 1e-9  # a row counts as flipped only when that piece is higher by this much


def row_losses(margins: FloatArray, multiplier: float, flip: float) -> FloatArray:
    """Loss of each row, shape (n,); no flip piece where ``flip`` is infinite."""
    losses = np.maximum(1.0 - margins, 0.0)
    if math.isfinite(flip):
        np.maximum(losses, margins + (1.0 - flip * multiplier), out=losses)
    return losses


def best_multiplier(margins: FloatArray, price: float, flip: float, size: float) -> float:
    """Transport multiplier that is optimal for weights of dual norm ``size`` with these margins.

    It is the least one at or above ``size`` for which the flipped rows cost no more than ``price`` allows: flipping
    pays for row i below ``min(1 + m, 2 m) / flip``.
    """
    if not math.isfinite(flip):
        return size
    allowed = math.floor(min(price / flip, float(margins.size)))
    if allowed >= margins.size:
        return size
    worth = np.minimum(1.0 + margins, 2.0 * margins)
    if allowed == 0:
        return max(size, float(worth.max()) / flip)
    place = margins.size - 1 - allowed
    worth.partition(place)
    return max(size, float(worth[place]) / flip)


def kink_distance(margins: FloatArray, multiplier: float, flip: float) -> FloatArray:
    """How far below the highest piece of each row the next one is, shape (n,)."""
    kept = 1.0 - margins
    if not math.isfinite(flip):
        return np.abs(kept)
    flipped = margins + (1.0 - flip * multiplier)
    plain = np.maximum(kept, 0.0)
    # the middle one of (0, kept, flipped) against the highest
    middle = np.maximum(np.minimum(kept, 0.0), np.minimum(plain, flipped))
    distance: FloatArray = np.maximum(plain, flipped) - middle
    return distance


def held_pieces(margins: FloatArray, multiplier: float, flip: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows lie in the kept piece and which in the flipped one, the latter empty where nothing flips."""
    kept = margins < 1.0
    if not math.isfinite(flip):
        return kept, np.zeros(0, dtype=bool)
    plain = np.maximum(1.0 - margins, 0.0)
    flipped = margins + (1.0 - flip * multiplier) > plain + _CLEARLY * (1.0 + np.abs(margins))
    return kept & ~flipped, flipped
