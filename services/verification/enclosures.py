"""Sums and norms of float64 numbers, enclosed: the true value lies between ``low`` and ``high``.

A sum of n products in float64, in whatever order, is off by at most ``n u / (1 - n u)`` times the sum of the absolute
products, ``u = 2^-53`` (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), and by n of the smallest
numbers where products underflow. Everything here is widened by more than that, and then by one last digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_TWICE_U = 2.0**-52
"""Twice the unit roundoff: the second half covers the rounding of the allowance itself."""
_TINY = 2.0**-1022
"""Above what a product that underflows can lose."""


@dataclass(frozen=True)
class Interval:
    """Arrays of one shape, or scalars, between which the true values lie; ends may be infinite."""

    low: Floats
    high: Floats

    @property
    def size(self) -> Floats:
        """Largest absolute value."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))

    def __add__(self, other: Interval) -> Interval:
        return Interval(down(self.low + other.low), up(self.high + other.high))


def down(values: Floats) -> Floats:
    """Next number below."""
    return np.asarray(np.nextafter(values, -np.inf))


def up(values: Floats) -> Floats:
    """Next number above."""
    return np.asarray(np.nextafter(values, np.inf))


def dot(left: Floats, right: Floats) -> Interval:
    """Enclosure of ``left @ right`` for exact arrays."""
    n = left.shape[-1]
    centre = np.asarray(left @ right)
    slack = (n + 4) * _TWICE_U * np.asarray(np.abs(left) @ np.abs(right)) + (n + 1) * _TINY
    return Interval(down(centre - slack), up(centre + slack))


def sums(shares: Floats, rows: Floats) -> Interval:
    """Enclosure of ``shares @ rows`` to the last digit, for exact (m,) and (m,) or (m, D).

    Every product is split into two numbers whose sum it is (Dekker 1971), and ``math.fsum`` rounds their sum once.
    """
    columns = rows.T if rows.ndim == 2 else rows[None]
    product = shares * columns
    (a, b), (c, d) = _halves(np.broadcast_to(shares, columns.shape)), _halves(columns)
    rest = b * d - (((product - a * c) - b * c) - a * d)
    found = np.array([math.fsum(part) for part in np.concatenate([product, rest], axis=1).tolist()])
    lost = 4 * (shares.shape[0] + 1) * _TINY
    low, high = down(down(found) - lost), up(up(found) + lost)
    return Interval(low, high) if rows.ndim == 2 else Interval(low[0], high[0])


def _halves(values: Floats) -> tuple[Floats, Floats]:
    """Two numbers of at most 26 digits each with this sum (Veltkamp), for values up to 1e292."""
    scaled = values * 134217729.0
    top = scaled - (scaled - values)
    return top, values - top


def times(left: Floats, right: Interval) -> Interval:
    """Enclosure of the products of exact numbers with enclosed ones, element by element."""
    ends = left * right.low, left * right.high
    return Interval(down(np.minimum(*ends) - _TINY), up(np.maximum(*ends) + _TINY))


def greatest_norm(size: Floats, norm: str) -> Floats:
    """Upper bound (...) on a norm of vectors whose entries are at most ``size`` (..., P) in absolute value."""
    largest = np.asarray(size.max(axis=-1, initial=0.0))
    if norm == "linf":
        return largest
    if norm == "l1":
        return dot(size, np.ones(size.shape[-1])).high
    # One scale for all entries of a vector, so that no square over- or underflows.
    shares = up(np.divide(size, largest[..., None], out=np.zeros_like(size), where=largest[..., None] > 0))
    squares = np.einsum("...p,...p->...", shares, shares) * (1.0 + (size.shape[-1] + 4) * _TWICE_U)
    return np.asarray(up(up(np.sqrt(up(squares))) * largest))
