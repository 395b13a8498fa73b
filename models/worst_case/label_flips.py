r"""The label flips that an adversary buys where moving features has a fixed worth.

    max { (1/N) sum_i b_i extra_i + floor (radius - (cost/N) sum_i b_i) : 0 <= b <= 1, (cost/N) sum_i b_i <= radius }

Row i flipped adds ``extra_i`` to its loss and costs ``cost / N``; a unit of radius spent on moving is worth ``floor``.
So flips are bought in the order of ``extra`` while they pay more than moving does. The answer needs the k-th largest
of N numbers and nothing else: O(N). Source: FDR eq. 9 and DRFL Corollaries B.4 to B.6 at fixed weights (MATH section
1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray


@dataclass(frozen=True)
class Flips:
    """What is bought: sets of rows, each flipped with a probability, which together spend ``radius - leftover``.

    ``added`` is the sum over the rows of what the flips add to the loss; ``price`` the worth of a unit of radius.
    """

    added: float
    price: float
    sets: tuple[tuple[float, NDArray[np.intp]], ...]
    leftover: float

    def shares(self, count: int) -> FloatArray:
        """Probability that each of ``count`` rows is flipped, (N,)."""
        flipped = np.zeros(count)
        for share, rows in self.sets:
            flipped[rows] += share
        return flipped


def buy_flips(extra: FloatArray, radius: float, cost: float, floor: float) -> Flips:
    """Best flips for ``extra`` (N,), a flip's ``cost`` (above 0, infinity forbids) and the ``floor`` of the price."""
    count = int(extra.shape[0])
    if not np.isfinite(cost):
        return Flips(0.0, floor, ((1.0, np.zeros(0, dtype=np.intp)),), radius)
    affordable = float(count) if radius >= cost else min(float(count), radius / cost * count)
    whole = int(affordable)
    order, threshold = _largest(extra, whole)
    if threshold > cost * floor:
        part = affordable - whole
        added = float(extra[order[:whole]].sum() + part * threshold)
        with np.errstate(over="ignore"):
            price = float(np.float64(threshold) / cost)
        return Flips(added, price, ((part, order[: whole + 1]), (1.0 - part, order[:whole])), 0.0)
    chosen = np.flatnonzero(extra > cost * floor)
    leftover = max(0.0, radius - cost * chosen.size / count)
    return Flips(float(extra[chosen].sum()), floor, ((1.0, chosen),), leftover)


def _largest(extra: FloatArray, whole: int) -> tuple[NDArray[np.intp], float]:
    """Indices of the ``whole + 1`` largest, the smallest of them last, and its value (-inf when all are taken)."""
    n = extra.shape[0]
    if whole >= n:
        return np.arange(n), -np.inf
    order = np.argpartition(extra, n - whole - 1)[n - whole - 1 :][::-1]
    smallest = int(np.argmin(extra[order]))
    order[[smallest, -1]] = order[[-1, smallest]]
    return order, float(extra[order[-1]])
