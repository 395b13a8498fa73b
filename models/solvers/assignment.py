r"""The assignment problem: to each row one column of its own, so that the sum of the costs is least.

    min over permutations s of  sum_i cost[i, s(i)]

Columns have prices v_j, and a row that holds column j holds one of least ``cost[i, j] - v_j``; a matching of all rows
that does is optimal (the duals of the linear program). First rows bid for columns, which matches most of them; each of
the others then finds a column by the shortest path of exchanges, in reduced costs (Jonker and Volgenant 1987).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

IntArray = NDArray[np.intp]
_BIDS = 6
"""Bids a row, on average, after which the rest goes by paths: prices that fall slowly would go on for long."""


def assign(cost: FloatArray) -> IntArray:
    """Column of each row (n,) in a least assignment of a square matrix of finite costs (n, n)."""
    prices = cost.min(axis=0)
    held = np.full(cost.shape[0], -1, dtype=np.intp)
    owner = held.copy()
    for row in _bid(cost, prices, held, owner):
        _exchange(cost, prices, held, owner, row)
    return held


def _bid(cost: FloatArray, prices: FloatArray, held: IntArray, owner: IntArray) -> list[int]:
    """Each row takes its best column and lowers its price to where the second best is as good; rows left without one.

    Who loses a column bids again at once, unless two columns are equally good, where it might go on for ever.
    """
    left: list[int] = []
    waiting = list(range(cost.shape[0]))[::-1]
    if cost.shape[0] < 2:
        return waiting
    for _ in range(_BIDS * cost.shape[0]):
        if not waiting:
            break
        row = waiting.pop()
        reduced = cost[row] - prices
        column = int(reduced.argmin())
        least, reduced[column] = float(reduced[column]), np.inf
        second = int(reduced.argmin())
        rise = float(reduced[second]) - least
        if rise > 0:
            prices[column] -= rise
        elif owner[column] >= 0:
            column = second
        loser = int(owner[column])
        owner[column], held[row] = row, column
        if loser >= 0:
            held[loser] = -1
            (waiting if rise > 0 else left).append(loser)
    return left + waiting


def _exchange(cost: FloatArray, prices: FloatArray, held: IntArray, owner: IntArray, start: int) -> None:
    """Match row ``start`` by the shortest path to a free column, by Dijkstra's method; prices keep costs reduced."""
    length = cost[start] - prices
    reached = length.copy()  # infinite from where the path is known
    before = np.full(length.shape[0], start, dtype=np.intp)
    while True:
        column = int(reached.argmin())
        shortest, row = float(reached[column]), int(owner[column])
        if row < 0:
            break
        reached[column] = np.inf
        onward = cost[row] - prices
        onward += shortest - onward[column]
        nearer = (onward < reached) & np.isfinite(reached)
        reached[nearer] = length[nearer] = onward[nearer]
        before[nearer] = row
    known = np.isinf(reached)
    prices[known] += length[known] - shortest
    row = -1
    while row != start:
        row = int(before[column])
        owner[column] = row
        column, held[row] = int(held[row]), column
