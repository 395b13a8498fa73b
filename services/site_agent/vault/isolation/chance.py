"""Rows of which a sum of several is by chance a multiple: the sums themselves held to the rows.

Where readings take few values, a vector ``c @ z``, z (N, P + 1) the rows as they stand in a slope, an intercept's 1
last, may be a multiple of a row whatever its coefficients c. Whoever sees it cannot tell such a row from one that was
left alone, so both count. What counts is an angle so small that sums of measured values come within it with
probability nil; sums of whole numbers are multiples of a row exactly or miss it by far.

Four numbers are kept of a sum: the intercept's part, and the readings along three random directions. Divided by the
first, the others of a multiple of a row are those of the row. The second of most sums, so divided, falls in a cell of
a table that holds no row, and no more is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

NUMBERS = 4  # of each vector, three by drawn directions and one of its own
_CHANCE = 1e-3
"""Of measured values, how many sums of one vector may come near to some row. Rows of one column lie on a line, where
sums come near to rows all the time, so there only nearer ones count."""
_WIDER = 4.0
"""Angles in the four numbers may be some three times those of the sums themselves, whose readings are not centred."""
_SUMS = 25_000  # of one vector: 18 500 differences of differences, and pairs with up to 4096
_CELLS_A_ROW = 128  # few rows share one, so few are looked at
_MOST_CELLS = 2**20  # of which two arrays of 4 MB are kept


class ChanceRows:
    """The rows, and which of them sums are multiples of."""

    def __init__(self, features: FloatArray, seed: int, rows: NDArray[np.intp], angle: float) -> None:
        """``features`` (N, P) of which ``rows`` (n,) are looked for, once each.

        ``angle`` : how far a sum may be from the row's direction, where that is nothing that happens by chance.
        """
        directions = np.random.default_rng([seed, NUMBERS]).standard_normal((features.shape[1], NUMBERS - 1))
        directions /= np.sqrt(features.shape[1])
        centred = features - features.mean(axis=0)
        self.columns = np.column_stack([np.ones(len(features)), centred @ directions])
        """Rows in four numbers, (N, 4): ``c @ columns`` are those of a sum."""
        rows = rows[np.argsort(self.columns[rows, 1], kind="stable")]
        self._rows, self._own = rows, self.columns[rows]
        self._places = np.ascontiguousarray(self._own[:, 1])
        self._lengths = np.sqrt(np.square(self._own).sum(axis=1))
        dimensions = max(1, int(np.linalg.matrix_rank(self._own)) - 1)
        self._angle = min(_WIDER * angle, (_CHANCE / (_SUMS * len(rows))) ** (1.0 / dimensions))
        # What an angle comes to in the place, the first of a row's numbers being 1.
        self._reach = 1.1 * self._angle * float((self._lengths * np.hypot(1.0, self._places)).max())
        self._low = float(self._places[0]) - 2.0 * self._reach
        cells = min(_MOST_CELLS, _CELLS_A_ROW * len(rows))
        self._scale = cells / (float(self._places[-1]) + 2.0 * self._reach - self._low)
        # Rows from one number on to below another may have their place in a cell; in a last one, beyond all, none has.
        begins, ends = (
            ((self._places + side * self._reach - self._low) * self._scale).astype(np.intp) for side in (-1, 1)
        )
        self._begin = np.searchsorted(ends, np.arange(cells + 1)).astype(np.int32)
        self._end = np.searchsorted(begins, np.arange(cells + 1), side="right").astype(np.int32)
        self._holds = self._begin < self._end

    def of_sums(self, sums: FloatArray, rounding: FloatArray) -> set[int]:
        """Rows of which some of the sums (n, 4) is a multiple above rounding (n,)."""
        found = set[int]()
        for near, row in self._near(*sums[:, :2].T):
            found |= self._confirmed(sums[near], row, rounding[near])
        return found

    def of_differences(
        self, one: FloatArray, other: FloatArray, one_rounding: FloatArray, other_rounding: FloatArray
    ) -> set[int]:
        """The same of all differences ``one_i - other_j`` of sums (n, 4) and (m, 4)."""
        found = set[int]()
        for near, row in self._near(*(np.subtract.outer(one[:, part], other[:, part]).ravel() for part in (0, 1))):
            first, second = np.divmod(near, other.shape[0])
            # Of most the third number says that they are none, and the others need not be made.
            multiple, third = (one[first, part] - other[second, part] for part in (0, 2))
            away = np.abs(third - multiple * self._own[row, 2])
            some = np.flatnonzero(away <= self._reach * np.abs(multiple))
            first, second = first[some], second[some]
            rounding = np.maximum(one_rounding[first], other_rounding[second])
            found |= self._confirmed(one[first] - other[second], row[some], rounding)
        return found

    def _near(self, multiple: FloatArray, along: FloatArray) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int32]]]:
        """Which sums, by their first two numbers (n,), fall in cells of rows, and of which rows, one at a time."""
        with np.errstate(divide="ignore", invalid="ignore"):
            cells = along / multiple
        cells -= self._low
        cells *= self._scale
        inside = ((cells >= 0) & (cells < len(self._holds))).nonzero()[0]  # what is no number is in none
        cell = cells[inside].astype(np.intp)
        held = self._holds[cell].nonzero()[0]
        near, cell = inside[held], cell[held]
        row, end = self._begin[cell], self._end[cell]
        while near.size:
            yield near, row
            more = (row + 1 < end).nonzero()[0]
            near, row, end = near[more], row[more] + 1, end[more]

    def _confirmed(self, sums: FloatArray, row: NDArray[np.int32], rounding: FloatArray) -> set[int]:
        """Of sums (n, 4), those that all four numbers say to be a multiple of the row beside, above rounding (n,)."""
        multiple = np.abs(sums[:, 0])
        away = sums - sums[:, :1] * self._own[row]
        alike = np.sqrt(np.square(away).sum(axis=1)) <= self._angle * multiple * self._lengths[row]
        return set(self._rows[row[alike & (multiple > rounding)]].tolist())
