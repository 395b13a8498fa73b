"""Euclidean projections on boxes cut by a sum, norm balls and affine sets, and the root of a monotone condition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.geometry.norms import vector_norm

_HALVINGS = 200
"""More halvings than any interval of float64 numbers of one sign has."""
_UNREACHED = 1e-14
"""Eigenvalue over the largest at or below which the rounding of a product decides it."""


def fill(values: FloatArray, low: FloatArray, high: FloatArray, total: float) -> FloatArray:
    """Euclidean projection (n,) on ``{low <= x <= high, sum x = total}``: ``clip(values - t, low, high)`` at a level t.

    The sum holds to rounding of the total, also where the values are so large that their own rounding is more.
    """
    shifted = values - values.max()
    filled = np.clip(shifted - water_level(shifted, low, high, total), low, high)
    short = total - float(filled.sum())
    room = high - filled if short > 0 else filled - low
    inner = np.where((filled > low) & (filled < high), room, 0.0)
    if inner.sum() >= abs(short):
        room = inner
    if room.any():
        filled = np.clip(filled + short * (room / room.sum()), low, high)
    return np.asarray(filled)


def water_level(values: FloatArray, low: FloatArray, high: FloatArray, total: float) -> float:
    """Level t at which ``sum_i clip(values_i - t, low_i, high_i) = total``; all by sorting, O(n log n).

    ``low <= high`` and ``sum(low) <= total <= sum(high)`` up to rounding. Where a whole interval of levels does, its
    middle, or its finite end.
    """
    breaks = np.concatenate([values - high, values - low])
    order = np.argsort(breaks, kind="stable")
    levels = breaks[order]
    # Left of the first break every entry is at its high; each passes at values - high into the slope and at
    # values - low out of it again.
    active = np.cumsum(np.where(order < values.shape[0], 1.0, -1.0))
    sums = high.sum() - np.concatenate([[0.0], np.cumsum(active[:-1] * np.diff(levels))])
    after = int(np.searchsorted(-sums, -total, side="left"))
    if after == 0:
        return float(levels[0])
    if after == levels.shape[0]:
        return float(levels[-1])
    middle = 0.5 * (levels[after - 1] + levels[after])
    moving = (values - high < middle) & (middle < values - low)
    if not moving.any():
        return float(levels[after])
    fixed = np.where(values - low <= middle, low, high)[~moving].sum()
    return float(np.clip((values[moving].sum() + fixed - total) / moving.sum(), levels[after - 1], levels[after]))


def nearest_in_ball(vector: FloatArray, radius: float, norm: TransportNorm) -> FloatArray:
    """Euclidean projection on the ball of a norm."""
    if norm == "linf":
        return np.clip(vector, -radius, radius)
    size = float(vector_norm(vector, norm))
    if size <= radius:
        return vector
    if norm == "l2":
        return np.asarray(vector * (radius / size))
    falling = np.sort(np.abs(vector))[::-1]
    drops = (np.cumsum(falling) - radius) / np.arange(1, vector.shape[0] + 1)
    drop = max(float(drops[max(int(np.count_nonzero(falling > drops)), 1) - 1]), 0.0)
    return np.asarray(np.sign(vector) * np.maximum(np.abs(vector) - drop, 0.0))


def least_change(rows: FloatArray, sizes: FloatArray, change: FloatArray) -> FloatArray:
    """The c (m,) of least ``sum_j sizes_j c_j^2`` with ``rows' (sizes c) = change``, by scaled normal equations.

    So weights of these sizes that are to change ``rows' weights`` by ``change`` (n,) change by as small shares of
    themselves as they can. Directions that the rows do not reach, to working precision, are left out.
    """
    spread = (rows.T * sizes) @ rows
    scale = 1.0 / np.sqrt(np.maximum(spread.diagonal(), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(spread * scale[:, None] * scale)
    reached = values > _UNREACHED * max(values[-1], 0.0)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=reached)
    return np.asarray(rows @ (scale * (vectors @ (inverse * (vectors.T @ (scale * change))))))


def least_where(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Least number of ``[low, high]`` at which a monotone condition holds, to the last bit; it holds at ``high``."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
