"""Leverage of the rows over the span of all vectors that left, and the figures of an exposure.

``h_i = sum_k Q_ki^2`` for an orthonormal basis Q of the span of their coefficients: row i can be isolated exactly if it
is 1 (``isolation.exposure`` says what isolated means).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

_NEW = 1e-9  # share of a vector that must lie outside the span for it to be a new direction
LEAST_LEVERAGE = 0.999
"""Leverage from which on a row counts as isolated by some combination."""


@dataclass(frozen=True)
class Figures:
    """What a site's answers isolate of its ``rows`` training rows.

    by_pairs, by_differences : rows isolated by one vector or two, and by up to four; the latter hold the former.
    leverage : the highest of a row; ``leveraged`` : rows at or above :data:`LEAST_LEVERAGE`.
    vectors : how many different ones have left; unaccounted : answers that said more than their account has.
    """

    rows: int
    by_pairs: int = 0
    by_differences: int = 0
    leverage: float = 0.0
    leveraged: int = 0
    vectors: int = 0
    unaccounted: int = 0


class Span:
    """Leverage of the rows over the span of vectors: an orthonormal basis, grown as they come, at most N vectors."""

    def __init__(self, n_rows: int, basis: FloatArray, most: int, *, full: bool = False) -> None:
        """``basis`` (r, N) so far; ``most`` directions are kept, and beyond them every row counts as isolated."""
        self._basis = np.zeros((min(most, n_rows), n_rows))
        self._rank = len(basis)
        self._basis[: self._rank] = basis
        self.full = full
        self.leverage: FloatArray = np.ones(n_rows) if full else np.square(basis).sum(axis=0)

    def add(self, rows: FloatArray) -> FloatArray | None:
        """Take in coefficients (N,); the new direction (N,) of the basis, or None where there is none."""
        size = float(np.linalg.norm(rows))
        if size == 0.0 or self.full or self._rank == rows.shape[0]:
            return None
        basis, left = self._basis[: self._rank], rows / size
        for _ in range(2):  # twice is enough: the second takes off what rounding left of the first
            left = left - (basis @ left) @ basis
        outside = float(np.linalg.norm(left))
        if outside <= _NEW:
            return None
        if self._rank == len(self._basis):
            self.full = True
            self.leverage = np.ones(rows.shape[0])
            return None
        direction: FloatArray = left / outside
        self._basis[self._rank] = direction
        self._rank += 1
        self.leverage = self.leverage + np.square(direction)
        return direction


def leveraged_rows(leverage: FloatArray) -> NDArray[np.bool_]:
    """Rows that some combination of all vectors isolates, (N,)."""
    return np.asarray(leverage >= LEAST_LEVERAGE)
