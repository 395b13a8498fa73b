r"""What a site's answers isolate: rows that differences of answers show, and leverage over the span of all of them.

Every vector that left is ``c @ features`` plus what is known without the rows, with coefficients c (N,) that the site
knows (``models.methods.row_account``). Row i is **isolated** by a combination of vectors whose coefficients leave row i
alone: ``sum_j s_j c_j = t e_i``. Three things are counted, scaled so that a row that counts fully has coefficient 1:

- one vector, or the difference of two, ``a - b``;
- differences of differences, ``(a - b) - (c - d)``, in which two of them may be the same: ``a - 2 b + c``;
- any combination: row i can be isolated exactly if e_i lies in the row space of A, the matrix of all c, that is, if its
  **leverage** ``h_i = (A^+ A)_ii`` is 1. With Q an orthonormal basis of that space, ``h_i = sum_k Q_ki^2``.

The first two an OEM sees without knowing any c, so a sum of several rows that is by chance a multiple of one
counts with them (``isolation.chance``). Where vectors are of unlike kinds (of two losses, say), he knows factors
besides, and rows that three vectors isolate by any factors count among the second (``isolation.factors``). The third is
an upper bound of what is possible: it takes the c.

Differences are searched in sketches of the coefficients (``isolation.row_directions``): a vector is kept as a few
numbers. Rows with the same features count as one, since whoever has one of them has all. What was told about other
versions of the rows is held to (``isolation.other_versions``); a row that the present one lacks has a number below 0.
"""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from services.site_agent.vault.isolation.chance import NUMBERS, ChanceRows
from services.site_agent.vault.isolation.factors import UNKNOWN_KIND, rows_in_spans, unlike
from services.site_agent.vault.isolation.few_rows import LateVectors, late_vectors
from services.site_agent.vault.isolation.other_versions import OtherVersions, unordered
from services.site_agent.vault.isolation.row_directions import ANGLE, OF_COEFFICIENTS, RowDirections
from services.site_agent.vault.isolation.sketches import FAINT, OF_ALL_VERSIONS, OF_ITSELF, OF_READINGS, SKETCH, largest

_PAIR_ANGLE = 0.002
"""In a difference of two, all others together may weigh a five-hundredth of the row (root of the squares). Of the many
differences of differences some come that near to a row by chance, and nobody can tell which."""
_COMBINED_ANGLE = 3e-4
"""The same in a difference of differences. More than :data:`ANGLE`, for rows of one table are much alike: what others
leave across the row is a part of their weight, and who looks at vectors alone sees that part."""
_CROWD = 50.0  # rows times angle: beyond it pairs would often be near to some row by chance
_SEARCHES_KEPT = 64  # vectors of which it is remembered what they isolate with those before: of a few answers
_DEPTH = 32  # last vectors, by when they were told last, of which pairs are held to pairs: 33 000 sums a vector

IntSet = set[int]
Sized = tuple[FloatArray, FloatArray]
"""Sums of sketches (n, q), and the size of the largest sketch in each (n,)."""


class Differences:
    """Rows isolated by differences of vectors, found as the vectors come."""

    def __init__(
        self, n_rows: int, seed: int, sketches: FloatArray, pairs: IntSet, differences: IntSet,
        alike: NDArray[np.intp] | None = None, features: FloatArray | None = None,
        readings: FloatArray | None = None, others: OtherVersions | None = None, late: LateVectors | None = None,
    ) -> None:
        """``sketches`` (M, q) of the vectors so far; ``seed`` draws R and must be the same every time.

        ``alike`` (N,) : the number of the first row with the same features; whoever has one of them has all.
        ``features`` (N, P) : to these the vectors themselves are held; None: their coefficients alone are looked at.
        ``readings`` (N, q) : the rows' own numbers in every version (``other_versions.row_numbers``); ``others`` were
        told about other versions. ``late`` are the last ones that left under products.
        """
        self._alike = np.arange(n_rows) if alike is None else alike
        self._repeats = not np.array_equal(self._alike, np.arange(n_rows))
        self._n_rows = n_rows
        # Nearer for so many rows that their directions would crowd.
        self._pair_angle = max(ANGLE, min(_PAIR_ANGLE, _CROWD / n_rows))
        self._combined_angle = min(_COMBINED_ANGLE, self._pair_angle)
        self._rows = RowDirections(n_rows, seed, self._alike, self._pair_angle)
        self._by_chance = None if features is None else ChanceRows(features, seed, np.unique(self._alike), ANGLE)
        sums = np.zeros((n_rows, NUMBERS)) if self._by_chance is None else self._by_chance.columns
        whatever = np.zeros((n_rows, OF_READINGS)) if readings is None else readings
        self._sketchers = np.column_stack([self._rows.sketcher, sums, whatever])
        self._others = others
        self.sketches = sketches.reshape(-1, SKETCH)
        self.sizes = largest(self.sketches)  # of each; of thousands it takes as long as the search for pairs
        self.pairs, self.differences = set(pairs), set(differences)
        self.kind, self.few = UNKNOWN_KIND, 1
        self.late = late or late_vectors(self._alike, np.arange(n_rows), ())
        self.history = hashlib.sha256(self.sketches.tobytes()).digest()
        self._found: OrderedDict[bytes, tuple[IntSet, IntSet]] = OrderedDict()

    def copy(self) -> Differences:
        """One that grows apart from this one."""
        other = copy.copy(self)
        other.pairs, other.differences = set(self.pairs), set(self.differences)
        return other

    def admits(self, vectors: Sequence[FloatArray]) -> bool:
        """Take in vectors, by their coefficients (N,), if they isolate no further row; whether they do not."""
        trial = self.copy()
        for each in vectors:
            sketch = trial.sketch(each)
            if trial.knows(sketch):
                trial.renew(sketch)
            elif self.few > 1 and trial.late.leaves_few(self._n_rows * each, self.few):
                return False
            else:
                by_pairs = trial.by_pairs(sketch)
                if not by_pairs <= trial.differences:
                    return False
                trial.add(sketch, by_pairs)
            if len(trial.differences) > len(self.differences):
                return False
            trial.note(each)
        self.sketches, self.sizes = trial.sketches, trial.sizes
        self.history, self.late = trial.history, trial.late
        self.pairs, self.differences = trial.pairs, trial.differences
        return True

    def take(self, vectors: Sequence[FloatArray]) -> None:
        """Take in those that are not known yet, and renew the others."""
        for each in vectors:
            sketch = self.sketch(each)
            if self.knows(sketch):
                self.renew(sketch)
            else:
                self.add(sketch)
            self.note(each)

    def note(self, rows: FloatArray) -> None:
        """Hold the next vectors to one that leaves, by its coefficients (N,), where a few rows are asked about."""
        if self.few > 1 and rows.any():
            self.late = self.late.and_one(self._n_rows * rows)

    def packed(self, rows: FloatArray) -> bytes | None:
        """What is kept of a vector that was noted, by its coefficients (N,); None where it was not."""
        return self.late.packed(self._n_rows * rows) if self.few > 1 and rows.any() else None

    def sketch(self, rows: FloatArray) -> FloatArray:
        """``R (N c)`` of coefficients (N,), of the vector itself, and the kind of what is told now, (q,)."""
        return np.append((self._n_rows * rows) @ self._sketchers, self.kind)

    def knows(self, sketch: FloatArray) -> bool:
        """Whether the very vector has left before, or it is zero."""
        return not largest(sketch[np.newaxis]).any() or self._place(sketch) is not None

    def _place(self, sketch: FloatArray) -> int | None:
        """Where among the sketches the very vector stands; None: nowhere."""
        rounding = FAINT * float(largest(sketch[np.newaxis])[0])
        near = np.flatnonzero(np.abs(self.sketches[:, 0] - sketch[0]) <= rounding)
        same = near[largest(self.sketches[near] - sketch) <= rounding]
        return int(same[-1]) if same.size else None

    def add(self, sketch: FloatArray, by_pairs: IntSet | None = None) -> None:
        """Take in a vector that is not known yet; ``by_pairs`` where :meth:`by_pairs` was asked already.

        Copies of one share what they found: what the guard tried and what then leaves is the same search.
        """
        self._tell(
            sketch, lambda: (self.by_pairs(sketch) if by_pairs is None else by_pairs, self._by_differences(sketch))
        )

    def renew(self, sketch: FloatArray) -> FloatArray | None:
        """Take in a vector that left before and is told again: one of the last ones once more, held to the others.

        The sketch (q,) under which it is known, and now stands last; None where it did already, or is zero. Vectors
        that came while it was no longer among the last :data:`_DEPTH` were not held to it.
        """
        place = self._place(sketch)
        if place is None or place == len(self.sketches) - 1:
            return None
        known, away = np.array(self.sketches[place]), place < len(self.sketches) - _DEPTH
        self.sketches, self.sizes = np.delete(self.sketches, place, axis=0), np.delete(self.sizes, place)
        self._tell(known, lambda: (set(), self._by_differences(known) if away else set()))
        return known

    def _tell(self, sketch: FloatArray, search: Callable[[], tuple[IntSet, IntSet]]) -> None:
        self.history = hashlib.sha256(self.history + sketch.tobytes()).digest()
        if self.history not in self._found:
            self._found[self.history] = search()
            while len(self._found) > _SEARCHES_KEPT:
                self._found.popitem(last=False)
        pairs, differences = self._found[self.history]
        self.pairs |= pairs
        self.differences |= differences | self.pairs
        self.sketches = np.vstack([self.sketches, sketch])
        self.sizes = np.append(self.sizes, largest(sketch[np.newaxis]))

    def _by_differences(self, sketch: FloatArray) -> IntSet:
        """Rows isolated by a vector with two or three of the last ones.

        With s the new one and 0 among the others those are ``s + b - (c + d)``, c and d in either order being one sum,
        and ``2 s - (c + d)``, the new one being both ends of ``a - 2 b + c``.
        """
        last = self.sketches[-_DEPTH:]
        recent = np.vstack([np.zeros(SKETCH), last])
        first, second = unordered(len(recent))
        sizes, own = largest(recent), largest(sketch[np.newaxis])
        found = self._isolated_differences(
            (np.vstack([sketch + recent, 2.0 * sketch]), np.append(np.maximum(sizes, own), own)),
            (recent[first] + recent[second], np.maximum(sizes[first], sizes[second])),
        )
        if unlike(sketch[-1], last[:, -1]):
            coefficients = last[:, :OF_COEFFICIENTS]
            found |= self._with_alike(rows_in_spans(sketch[:OF_COEFFICIENTS], coefficients, self._rows.sketcher))
        if self._others is not None:
            found |= self._with_alike(self._others.differences(
                sketch[OF_ALL_VERSIONS], last[:, OF_ALL_VERSIONS], np.append(last[:, -1], sketch[-1]), _DEPTH,
                self._combined_angle,
            ))
        return found

    def by_pairs(self, sketch: FloatArray) -> IntSet:
        """Rows isolated by a vector alone or with one of those so far."""
        rounding = FAINT * np.maximum(np.append(self.sizes, 0.0), largest(sketch[np.newaxis]))
        found, angle_to_row = set[int](), self._pair_angle
        combined = self._less_known(sketch, slice(OF_COEFFICIENTS))
        x, y, u, v = combined[:, :4].T
        for near, row in self._rows.near(x, y, u, v, angle_to_row):
            found |= self._rows.confirmed(combined[near], row, angle_to_row, rounding[near])
        if self._by_chance is not None:
            found |= self._by_chance.of_sums(self._less_known(sketch, OF_ITSELF), rounding)
        if self._others is not None:
            found |= self._others.pairs(sketch[OF_ALL_VERSIONS], angle_to_row)
        return self._with_alike(found)

    def _less_known(self, sketch: FloatArray, part: slice) -> FloatArray:
        """Some numbers of a vector's sketch less each so far, and less none, last (M + 1, n)."""
        return np.vstack([sketch[part] - self.sketches[:, part], sketch[part]])

    def _isolated_differences(self, sized: Sized, less: Sized) -> IntSet:
        """The same of all differences of one of some sums (n, q) and one of others (m, q), by the sizes of both."""
        (one, one_size), (other, other_size), angle_to_row = sized, less, self._combined_angle
        ones, others, found = np.ascontiguousarray(one[:, :4].T), np.ascontiguousarray(other[:, :4].T), set[int]()
        x, y, u, v = (np.subtract.outer(*pair).ravel() for pair in zip(ones, others, strict=True))
        for near, row in self._rows.near(x, y, u, v, angle_to_row):
            first, second = np.divmod(near, other.shape[0])
            rounding = FAINT * np.maximum(one_size[first], other_size[second])
            found |= self._rows.confirmed(one[first] - other[second], row, angle_to_row, rounding)
        if self._by_chance is not None:
            found |= self._by_chance.of_differences(
                one[:, OF_ITSELF], other[:, OF_ITSELF], FAINT * one_size, FAINT * other_size
            )
        return self._with_alike(found)

    def _with_alike(self, found: IntSet) -> IntSet:
        """The rows with all that have the same features."""
        if not found or not self._repeats:
            return found
        present = np.flatnonzero(np.isin(self._alike, list(found))).tolist()
        return {row for row in found if row < 0} | set(present)
