r"""Rows that answers about two versions of the data isolate: what came, went or changed between two runs.

The same question about rows of which one is new has two answers whose difference is that row, times N a slope being a
sum over the rows. So a new vector is held to those that were told about other versions too. Sketches of one version
say nothing beside those of another, where a row has another number; these do, for a row's part follows from its
readings and a secret of the vault:

    s = sum_i N c_i R(x_i),      R(x) (q,): (cos t, sin t) for q / 2 angles t, drawn by a keyed hash of x

A difference of two of them that is a multiple of R(x) leaves x alone (``isolation.exposure``). Rows
are looked for that the present version has, and those that it has no more. Readings are those of the sensors, not those
scaled to a contract's ranges: who changes a range by a little still asks about the same rows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from services.site_agent.vault.isolation.factors import rows_in_spans, unlike
from services.site_agent.vault.isolation.row_directions import are_multiples
from services.site_agent.vault.isolation.sketches import FAINT, OF_READINGS, largest

_PLANES = OF_READINGS // 2
_LENGTH = math.sqrt(_PLANES)  # of each R(x)
_EDGE = 1e-9  # angles may miss by so much in rounding


def row_marks(readings: FloatArray, columns: Sequence[str]) -> NDArray[np.uint64]:
    """A number (N,) for the readings (N, P) of each row in named columns, equal for equal ones in whatever order.

    Columns that are not measured, NaN in every row, do not count.
    """
    measured = sorted((name, at) for at, name in enumerate(columns) if not np.isnan(readings[:, at]).all())
    known = hashlib.blake2b(repr([name for name, _ in measured]).encode())
    rows = np.ascontiguousarray(readings[:, [at for _, at in measured]], dtype=np.float64) + 0.0  # one zero, not two

    def mark(row: FloatArray) -> bytes:
        found = known.copy()
        found.update(row.tobytes())
        return found.digest()[:8]

    return np.frombuffer(b"".join(map(mark, rows)), dtype=np.uint64)


def row_numbers(secret: bytes, marks: NDArray[np.uint64]) -> FloatArray:
    """R (N, q) of rows by their marks (N,), whatever the version; the first angle is below pi."""
    key = hashlib.blake2b(secret, digest_size=32).digest()
    drawn = b"".join(hashlib.blake2b(mark.tobytes(), key=key, digest_size=8 * _PLANES).digest() for mark in marks)
    angles = np.frombuffer(drawn, dtype=np.uint64).reshape(-1, _PLANES) * (2.0 * np.pi / 2.0**64)
    angles[:, 0] *= 0.5
    return np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(-1, OF_READINGS)


class OtherVersions:
    """Vectors told about other versions of the data, and the rows that a difference with one of them may leave alone.

    A row of the present version goes by its number, the first of those with the same readings, another one by its name,
    negative.
    """

    def __init__(
        self, own: FloatArray, gone: FloatArray, names: NDArray[np.int64], vectors: FloatArray, kinds: FloatArray
    ) -> None:
        """``own`` (N, q) and ``gone`` (G, q) from :func:`row_numbers`, these with names (G,) above 0.

        ``vectors`` (M, q) : sketches of what was told, the latest last, of ``kinds`` (M,).
        """
        first = np.unique(own, axis=0, return_index=True)[1]
        rows, numbers = np.vstack([own[first], gone]), np.concatenate([first, -names])
        angles = np.arctan2(rows[:, 1], rows[:, 0]) % np.pi
        order = np.argsort(angles, kind="stable")
        self._rows, self._names = rows[order], numbers[order]
        # Once more on either side: a direction and its opposite are the same row.
        self._angles = np.concatenate([angles[order] - np.pi, angles[order], angles[order] + np.pi])
        self._vectors, self._kinds = vectors, kinds

    def pairs(self, sketch: FloatArray, angle_to_row: float) -> set[int]:
        """Rows that a vector less one of another version leaves alone, up to an angle."""
        rounding = FAINT * np.maximum(largest(self._vectors), largest(sketch[np.newaxis]))
        return self._multiples(sketch - self._vectors, rounding, angle_to_row)

    def differences(
        self, sketch: FloatArray, late: FloatArray, kinds: FloatArray, depth: int, angle_to_row: float
    ) -> set[int]:
        """The same of ``(a - b) - (c - d)`` of the last vectors that were told, as far as some are of another version.

        ``late`` (m, q) are those of the present one, of ``kinds`` (m + 1,), the new one's last. Of unlike kinds rows
        count too that the new one and two of them leave alone by any factors.
        """
        before = self._vectors[max(0, len(self._vectors) + len(late) - depth) :]
        if not len(before):
            return set()
        recent = np.vstack([np.zeros(OF_READINGS), before, late])
        first, second = unordered(len(recent))
        ones, others = np.vstack([sketch + recent, 2.0 * sketch]), recent[first] + recent[second]
        sums = (ones[:, np.newaxis] - others).reshape(-1, OF_READINGS)
        size = float(largest(np.vstack([recent, sketch])).max())
        found = self._multiples(sums, np.full(len(sums), FAINT * size), angle_to_row)
        told = np.append(self._kinds[len(self._kinds) - len(before) :], kinds)
        if unlike(kinds[-1], told):
            spanned = rows_in_spans(sketch, recent[1:], self._rows)
            found |= set(self._names[list(spanned)].tolist())
        return found

    def _multiples(self, sums: FloatArray, rounding: FloatArray, angle_to_row: float) -> set[int]:
        """Rows of which some of the sums (n, q) is a multiple, above rounding (n,).

        A multiple of a row has its direction in each plane; most sums are sorted out in the first two.
        """
        found, reach = set[int](), 1.1 * _LENGTH * angle_to_row
        place = np.arctan2(sums[:, 1], sums[:, 0])
        begin = np.searchsorted(self._angles, place - reach - _EDGE)
        end = np.searchsorted(self._angles, place + reach + _EDGE, side="right")
        across = reach * np.hypot(sums[:, 0], sums[:, 1])
        near = np.flatnonzero(begin < end)
        while near.size:
            row = begin[near] % len(self._rows)
            second = sums[near, 2] * self._rows[row, 3] - sums[near, 3] * self._rows[row, 2]
            both = np.abs(second) <= across[near]
            found |= self._confirmed(sums[near[both]], row[both], rounding[near[both]], angle_to_row)
            begin[near] += 1
            near = near[begin[near] < end[near]]
        return found

    def _confirmed(
        self, sums: FloatArray, row: NDArray[np.intp], rounding: FloatArray, angle_to_row: float
    ) -> set[int]:
        alone = are_multiples(sums, self._rows[row], np.full(len(row), _LENGTH), angle_to_row, rounding)
        return set(self._names[row[alone]].tolist())


@cache
def unordered(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All pairs of numbers below ``count``, one with itself too, in one order each."""
    return np.triu_indices(count)
