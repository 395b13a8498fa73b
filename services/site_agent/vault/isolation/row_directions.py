"""Which sketches of coefficients are multiples of a single row's: directions of the rows, and who comes near to them.

With R (q, N) random, ``R c`` (q,) of coefficients c that leave row i alone is a multiple of the column R_i, and no
other is, but with probability nil. The first two numbers of R_i are a direction in a plane, one of N at equal angles,
so the angle of a sketch says which row alone it can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

OF_COEFFICIENTS = 8
"""Numbers kept of a vector's coefficients: by chance a direction comes within ANGLE of a given one less than once in
1e25, within the angle of pairs less than once in 1e9."""
ANGLE = 1.5e-5  # a cosine within 1e-10 of 1: how far what is left may be from the row itself
_SINGLE = 1e-12  # below it squares come near to the least numbers of single precision, and directions are taken first
_EDGE = 1e-9  # angles of a row by which rounding may put one across the border to the next


class RowDirections:
    """The sketches of N rows, and those of some sketches that are nearly multiples of one."""

    def __init__(self, n_rows: int, seed: int, alike: NDArray[np.intp], widest: float) -> None:
        """``seed`` draws R; ``alike`` (N,) is each row's first equal; ``widest``: the largest angle asked for."""
        angles = np.pi * (np.arange(n_rows) + 0.5) / n_rows
        drawn = np.random.default_rng(seed).standard_normal((n_rows, OF_COEFFICIENTS - 2))
        self.sketcher = np.column_stack([np.cos(angles), np.sin(angles), drawn])[alike]
        """R transposed, (N, q)."""
        self._lengths = np.sqrt(np.einsum("ij,ij->i", self.sketcher, self.sketcher))
        self._longest = float(self._lengths.max())
        self._n_rows = n_rows
        # The second plane of the rows by their angles, once around and a little more: either sign is the same row.
        self._ahead = n_rows + self._reach(widest)
        around = np.arange(-self._ahead, self._ahead + 1) % n_rows
        self._cosines, self._sines = np.ascontiguousarray(self.sketcher[around, 2:4].T, dtype=np.float32)

    def near(
        self, x: FloatArray, y: FloatArray, u: FloatArray, v: FloatArray, angle_to_row: float
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Which sketches, by their first four numbers (n,), may be multiples of a row, and of which, a few at a time.

        Of most of them two planes of numbers are looked at and no more: what is nearly a multiple of a row has its
        direction in both.
        """
        if float(np.abs(x).min(initial=1.0)) < _SINGLE:
            longest = np.abs([x, y, u, v]).max(axis=0)
            x, y, u, v = np.divide([x, y, u, v], longest, where=longest > 0.0, out=np.zeros((4, len(x))))
        # Differences in double precision, angles in single: these miss 1e-6, and _plane allows 6e-6 and more.
        down, along, first, second = (part.astype(np.float32) for part in (y, x, u, v))
        plane, reach = self._plane(angle_to_row), self._reach(angle_to_row)
        place = np.arctan2(down, along)
        place *= np.float32(self._n_rows / np.pi)
        cell = np.floor(place, out=place).astype(np.intp)
        size = first * first
        size += second * second
        size *= np.float32(plane * plane)
        for shift in range(-reach, reach + 1):
            # The sine of the angle between the directions in the second plane, times both lengths.
            row = cell + (self._ahead + shift)
            across = self._sines.take(row)
            across *= first
            other = self._cosines.take(row)
            other *= second
            across -= other
            across *= across
            near = (across <= size).nonzero()[0]
            if near.size:
                yield near, (cell[near] + shift) % self._n_rows

    def _plane(self, angle_to_row: float) -> float:
        """A little more than such an angle may be in the first plane, where rows have length 1."""
        return 1.1 * angle_to_row * self._longest

    def _reach(self, angle_to_row: float) -> int:
        """How many rows to either side such an angle may lead: 0 while it is less than the half of a row's own."""
        return max(0, math.ceil(self._plane(angle_to_row) * self._n_rows / np.pi - 0.5 + _EDGE))

    def confirmed(
        self, combined: FloatArray, row: NDArray[np.intp], angle_to_row: float, rounding: FloatArray
    ) -> set[int]:
        """Of sketches (n, q), those that all numbers of the coefficients say to be a multiple of the row beside.

        One above ``rounding`` (n,), a part of the sizes of what was put together.
        """
        own, combined = self.sketcher[row], combined[:, :OF_COEFFICIENTS]
        return set(row[are_multiples(combined, own, self._lengths[row], angle_to_row, rounding)].tolist())


def are_multiples(
    sums: FloatArray, own: FloatArray, lengths: FloatArray, angle_to_row: float, rounding: FloatArray
) -> NDArray[np.bool_]:
    """Which sums (n, q) are a multiple, above ``rounding`` (n,), of the row beside, ``own`` (n, q) of ``lengths``."""
    size = np.einsum("ij,ij->i", sums, own) / lengths**2
    left = sums - size[:, np.newaxis] * own
    away = np.sqrt(np.einsum("ij,ij->i", left, left))
    return np.asarray((away <= angle_to_row * np.abs(size) * lengths) & (np.abs(size) > rounding))
