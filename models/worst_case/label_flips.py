r"""The label flips that an adversary buys where moving features has a fixed worth.

    max { (1/N) sum_i b_i extra_i + floor (radius - (cost/N) sum_i b_i) : 0 <= b <= 1, (cost/N) sum_i b_i <= radius }

Row i flipped adds ``extra_i`` to its loss and costs ``cost / N``; a unit of radius spent on moving is worth ``floor``.
So flips are bought in the order of ``extra`` while they pay more than moving does. The answer needs the k-th largest of
N numbers and nothing else: O(N). Where rows count more or less than once (weights v_i with mean 1), a flip of row i
adds ``v_i extra_i`` and costs ``v_i cost / N``: the order stays, and a sort finds how far the radius goes. Source: FDR
eq. 9 and DRFL Corollaries B.4 to B.6 at fixed weights (MATH section 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray


@dataclass(frozen=True)
class Flips:
    """What is bought: sets of rows, each flipped with a probability, which together spend ``radius - leftover``.

    ``added`` is the sum over the rows of what the flips add to the loss; ``multiplier`` the worth of a unit of radius.
    """

    added: float
    multiplier: float
    sets: tuple[tuple[float, NDArray[np.intp]], ...]
    leftover: float

    def shares(self, count: int) -> FloatArray:
        """Probability that each of ``count`` rows is flipped, (N,)."""
        flipped = np.zeros(count)
        for share, rows in self.sets:
            flipped[rows] += share
        return flipped


def buy_flips(
    extra: FloatArray, radius: float, cost: float, floor: float, row_weights: FloatArray | None = None
) -> Flips:
    """Best flips for ``extra`` (N,), a flip's ``cost`` (above 0, infinity forbids) and the ``floor`` of the price.

    ``row_weights`` (N,) with mean 1: how often each row counts; None: once.
    """
    count = int(extra.shape[0])
    if not np.isfinite(cost):
        return Flips(0.0, floor, ((1.0, np.zeros(0, dtype=np.intp)),), radius)
    affordable = float(count) if radius >= cost else min(float(count), radius / cost * count)
    gains = extra if row_weights is None else extra * row_weights
    if row_weights is None:
        whole = int(affordable)
        part = affordable - whole
        order, threshold = _largest(extra, whole)
    else:
        order = np.argsort(-extra, kind="stable")
        paid = np.concatenate([[0.0], np.cumsum(row_weights[order])])
        whole = int(np.searchsorted(paid[1:], affordable, side="right"))
        threshold = float(extra[order[whole]]) if whole < count else -np.inf
        part = (affordable - paid[whole]) / row_weights[order[whole]] if whole < count else 0.0
    if threshold > cost * floor:
        added = float(gains[order[:whole]].sum() + part * gains[order[whole]])
        with np.errstate(over="ignore"):
            multiplier = float(np.float64(threshold) / cost)
        return Flips(added, multiplier, ((part, order[: whole + 1]), (1.0 - part, order[:whole])), 0.0)
    chosen = np.flatnonzero(extra > cost * floor)
    bought = chosen.size if row_weights is None else float(row_weights[chosen].sum())
    leftover = max(0.0, radius - cost * bought / count)
    return Flips(float(gains[chosen].sum()), floor, ((1.0, chosen),), leftover)


def _largest(extra: FloatArray, whole: int) -> tuple[NDArray[np.intp], float]:
    """Indices of the ``whole + 1`` largest, the smallest of them last, and its value (-inf when all are taken)."""
    n = extra.shape[0]
    if whole >= n:
        return np.arange(n), -np.inf
    order = np.argpartition(extra, n - whole - 1)[n - whole - 1 :][::-1]
    smallest = int(np.argmin(extra[order]))
    order[[smallest, -1]] = order[[-1, smallest]]
    return order, float(extra[order[-1]])
