r"""Differences of two answers that a few rows make alone: under products of features these rows can be solved for.

A difference ``sum_k d_k (1, x_k)`` of two rows or more has more unknowns than numbers, where the features stand in it
as they are. Products of all pairs with squares are the symmetric matrix ``sum_k d_k u_k u_k^T``, u = (1, x), and of
rank two it has one decomposition into u that begin with 1; of rank three what is free is one number, which the sensor
ranges narrow. So under products a vector leaves only where the difference from each of the last has no row, or more
than three.

Vectors of another version of the data count too, as long as the agent runs: the same question before and after two
rows came has answers that these two make.

Under splines a few rows tell in which segments their readings lie, and where, but not which belong together; under D
waves ``D / P`` rows can be solved for. There nothing is held to it: next to an optimum hardly an answer could leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

OF_PRODUCTS: Final = 3
"""Rows that no difference of two answers under products is made of: two that can be solved for, and one to spare."""
LATE: Final = 256
"""Vectors to which the next one is held, since the agent began."""
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

    alike (N,) : the number of the first row with the same features. readings (N, q) : the rows' numbers in any version
    of the data (``vault.other_versions``). vectors : coefficients (N + G,) each, the last G of rows with the numbers
    beyond (G, q), which the present version lacks.
    """

    alike: NDArray[np.intp]
    readings: FloatArray
    beyond: FloatArray
    vectors: tuple[FloatArray, ...] = ()

    def leaves_few(self, rows: FloatArray, few: int) -> bool:
        """Whether a vector, by its coefficients (N,) scaled as the others are, is few rows away from one of them."""
        alike = np.append(self.alike, len(self.alike) + np.arange(len(self.beyond)))
        return leaves_few(self._over_all(rows), self.vectors, alike, few)

    def and_one(self, rows: FloatArray) -> LateVectors:
        """These and one more, the oldest left out."""
        return replace(self, vectors=(*self.vectors, self._over_all(rows))[-LATE:])

    def and_those_of(self, before: LateVectors) -> LateVectors:
        """The vectors of ``before``, which are over another version of the data, over the rows of this one."""
        if not before.vectors:
            return self
        rows, told = np.vstack([before.readings, before.beyond]), np.any(before.vectors, axis=0)
        place = {numbers.tobytes(): row for row, numbers in reversed([*enumerate(self.readings)])}
        target, beyond = np.zeros(len(rows), dtype=np.intp), list[FloatArray]()
        for row in np.flatnonzero(told):
            known = rows[row].tobytes()
            if known not in place:
                place[known] = len(self.readings) + len(beyond)
                beyond.append(rows[row])
            target[row] = place[known]
        length = len(self.readings) + len(beyond)
        moved = tuple(np.bincount(target, each, length).astype(np.float64) for each in before.vectors)
        return replace(self, beyond=np.array(beyond).reshape(-1, rows.shape[1]), vectors=moved)

    def _over_all(self, rows: FloatArray) -> FloatArray:
        return np.append(rows, np.zeros(len(self.beyond)))
