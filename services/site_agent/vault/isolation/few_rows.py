r"""Differences of two answers that a few rows make alone: under products of features these rows can be solved for.

A difference ``sum_k d_k (1, x_k)`` of two rows or more has more unknowns than numbers, where the features stand in it
as they are. Products of all pairs with squares are the symmetric matrix ``sum_k d_k u_k u_k^T``, u = (1, x), and of
rank two it has one decomposition into u that begin with 1; of rank three what is free is one number, which the sensor
ranges narrow. So under products a vector leaves only where the difference from each of the last has no row, or more
than three.

Vectors of other versions of the data count too: the same question before and after two rows came has answers that
these two make.

Under splines a few rows tell in which segments their readings lie, and where, but not which belong together; under D
waves ``D / P`` rows can be solved for. There nothing is held to it: next to an optimum hardly an answer could leave.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

OF_PRODUCTS: Final = 3
"""Rows that no difference of two answers under products is made of: two that can be solved for, and one to spare."""
LATE: Final = 256
"""Vectors to which the next one is held: the last ones."""
_BESIDE: Final = 0.002
"""What a row weighs, as a part of the heaviest, below which it counts as hidden: as ``exposure`` has it of pairs."""


def leaves_few(rows: FloatArray, late: Sequence[FloatArray], alike: NDArray[np.intp], few: int) -> bool:
    """Whether a vector, by its coefficients (N,), is made of 1 to ``few`` rows, alone or less one of the last.

    ``alike`` (N,): the number of the first row with the same features; such rows count as one.
    """
    apart = rows - np.vstack([np.zeros_like(rows), *late])
    if not np.array_equal(alike, np.arange(len(alike))):
        order = np.argsort(alike, kind="stable")
        apart = np.add.reduceat(apart[:, order], np.unique(alike[order], return_index=True)[1], axis=1)
    sizes = np.abs(apart)
    heaviest = sizes.max(axis=1)
    told = (sizes > _BESIDE * heaviest[:, np.newaxis]).sum(axis=1)
    return bool(((told <= few) & (heaviest > 0.0)).any())


@dataclass(frozen=True)
class LateVectors:
    """The last vectors that left, to which the next one is held where few rows may not be told.

    alike (N,) : the number of the first row with the same features. names (N,) : the rows' names in any version of the
    data (``records.known_rows``). vectors : coefficients (N + G,) each, as sums over rows, the last G of the rows with
    the names beyond (G,), which the present version lacks.
    """

    alike: NDArray[np.intp]
    names: NDArray[np.int64]
    beyond: NDArray[np.int64]
    vectors: tuple[FloatArray, ...] = ()

    def leaves_few(self, rows: FloatArray, few: int) -> bool:
        """Whether a vector, by its coefficients (N,) as a sum over rows, is few rows away from one of them."""
        alike = np.append(self.alike, len(self.alike) + np.arange(len(self.beyond)))
        return leaves_few(self._over_all(rows), self.vectors, alike, few)

    def and_one(self, rows: FloatArray) -> LateVectors:
        """These and one more, the oldest left out."""
        return replace(self, vectors=(*self.vectors, self._over_all(rows))[-LATE:])

    def packed(self, rows: FloatArray) -> bytes:
        """What is kept of a vector: names of its rows and their coefficients, compressed, for many are alike."""
        told = np.flatnonzero(rows)
        return zlib.compress(self.names[told].tobytes() + rows[told].tobytes(), 1)

    def _over_all(self, rows: FloatArray) -> FloatArray:
        return np.append(rows, np.zeros(len(self.beyond)))


def late_vectors(alike: NDArray[np.intp], names: NDArray[np.int64], kept: Sequence[bytes]) -> LateVectors:
    """Vectors as :meth:`LateVectors.packed` kept them, of whatever version of the data, over the rows of this one."""
    told = [_unpacked(each) for each in kept]
    place = {name: row for row, name in reversed([*enumerate(names.tolist())])}
    beyond = [name for name in dict.fromkeys(np.concatenate([known for known, _ in told] or [names[:0]]).tolist())
              if name not in place]
    place |= {name: len(names) + number for number, name in enumerate(beyond)}
    length = len(names) + len(beyond)
    vectors = tuple(
        np.bincount([place[name] for name in known.tolist()], rows, length).astype(np.float64) for known, rows in told
    )
    return LateVectors(alike, names, np.array(beyond, dtype=np.int64), vectors)


def _unpacked(kept: bytes) -> tuple[NDArray[np.int64], FloatArray]:
    numbers = zlib.decompress(kept)
    half = len(numbers) // 2
    return np.frombuffer(numbers[:half], dtype=np.int64), np.frombuffer(numbers[half:])
