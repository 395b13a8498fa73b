r"""What a site's answers isolate: rows that differences of answers show, and leverage over the span of all of them.

Every vector that left is ``c @ features`` plus what is known without the rows, with coefficients c (N,) that the site
knows (``models.methods.row_account``). Row i is **isolated** by a combination of vectors whose coefficients leave row i
alone: ``sum_j s_j c_j = t e_i``. Three things are counted, scaled so that a row that counts fully has coefficient 1:

- one vector, or the difference of two, ``a - b``;
- differences of differences, ``(a - b) - (c - d)``, in which two of them may be the same: ``a - 2 b + c``;
- any combination: row i can be isolated exactly if e_i lies in the row space of A, the matrix of all c, that is, if its
  **leverage** ``h_i = (A^+ A)_ii`` is 1. With Q an orthonormal basis of that space, ``h_i = sum_k Q_ki^2``.

The first two an OEM sees without knowing any c. The third is an upper bound of what is possible: it takes the c.

Differences are searched in sketches: with R (q, N) random, ``R c`` (q,) of a vector that leaves row i alone is a
multiple of the column R_i, and no other is, but with probability nil. The first two numbers of R_i are a direction in a
plane, one of N at equal angles, so the angle of a combination says which row alone it can be. A vector is kept as q
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

SKETCH = 8
"""Numbers kept of a vector: by chance a direction comes within _ANGLE of a given one less than once in 1e25."""

_ANGLE = 1.5e-5  # a cosine within 1e-10 of 1: how far what is left may be from the row itself
_PLANE = 2e-4  # _ANGLE in the plane of the first two numbers, which hold a tenth or more of a length
_FAINT = 1e-9  # share of a whole row below which a coefficient is rounding
_NEW = 1e-9  # share of a vector that must lie outside the span for it to be a new direction
_DEPTH = 48  # last vectors of which pairs are held to pairs: 1128 pairs, 50 000 look-ups a vector
LEAST_LEVERAGE = 0.999
"""Leverage from which on a row counts as isolated by some combination."""

IntSet = set[int]


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


class Differences:
    """Rows isolated by differences of vectors, found as the vectors come."""

    def __init__(self, n_rows: int, seed: int, sketches: FloatArray, pairs: IntSet, differences: IntSet) -> None:
        """``sketches`` (M, q) of the vectors so far; ``seed`` draws R and must be the same every time."""
        self._angles = np.pi * (np.arange(n_rows) + 0.5) / n_rows
        drawn = np.random.default_rng(seed).standard_normal((n_rows, SKETCH - 2))
        self._sketcher = np.column_stack([np.cos(self._angles), np.sin(self._angles), drawn])
        self._lengths = np.sqrt(np.einsum("ij,ij->i", self._sketcher, self._sketcher))
        self._n_rows = n_rows
        self.sketches = sketches.reshape(-1, SKETCH)
        self.pairs, self.differences = set(pairs), set(differences)

    def sketch(self, rows: FloatArray) -> FloatArray:
        """``R (N c)`` (q,) of coefficients (N,)."""
        return np.asarray((self._n_rows * rows) @ self._sketcher)

    def knows(self, sketch: FloatArray) -> bool:
        """Whether the very vector has left before, or it is zero."""
        known = np.vstack([self.sketches, np.zeros(SKETCH)])
        return bool((np.abs(known - sketch).max(axis=1) <= _FAINT).any())

    def add(self, sketch: FloatArray) -> None:
        """Take in a vector that is not known yet."""
        self.pairs |= self._isolated(sketch - np.vstack([self.sketches, np.zeros(SKETCH)]))
        recent = np.vstack([np.zeros(SKETCH), self.sketches[-_DEPTH:]])
        first, second = np.triu_indices(len(recent), 1)
        older = recent[first] - recent[second]
        newer = sketch - recent
        both = np.concatenate([older, -older])
        found = self._isolated((newer[:, np.newaxis] - both[np.newaxis]).reshape(-1, SKETCH))
        # a - 2 b + c, the new one being a or b
        found |= self._isolated((newer[:, np.newaxis] + newer[np.newaxis]).reshape(-1, SKETCH))
        self.differences |= found | self.pairs
        self.sketches = np.vstack([self.sketches, sketch])

    def _isolated(self, combined: FloatArray) -> IntSet:
        """Rows of which some of the sketches (n, q) is a multiple, large enough not to be rounding."""
        sizes = np.sqrt(np.einsum("ij,ij->i", combined, combined))
        angle = np.arctan2(combined[:, 1], combined[:, 0]) % np.pi
        place = np.floor(angle / np.pi * self._n_rows).astype(np.intp)
        found: IntSet = set()
        reach = 1 + int(_PLANE * self._n_rows / np.pi)
        for shift in range(-reach, reach + 1):
            row = (place + shift) % self._n_rows
            away = np.abs(angle - self._angles[row])
            near = np.flatnonzero((np.minimum(away, np.pi - away) <= _PLANE) & (sizes > _FAINT))
            own = self._sketcher[row[near]]
            size = np.einsum("ij,ij->i", combined[near], own) / self._lengths[row[near]] ** 2
            left = combined[near] - size[:, np.newaxis] * own
            alone = np.sqrt(np.einsum("ij,ij->i", left, left)) <= _ANGLE * sizes[near]
            found.update(row[near][alone & (np.abs(size) > _FAINT)].tolist())
        return found


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
