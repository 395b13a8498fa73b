"""What has been said of one version of the data, in memory: its differences, its span, and the figures of both."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.methods.row_account import RowAccount
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.isolation.exposure import Differences
from services.site_agent.vault.isolation.few_rows import late_vectors
from services.site_agent.vault.isolation.guard import Left
from services.site_agent.vault.isolation.other_versions import OtherVersions
from services.site_agent.vault.isolation.span import Figures, Span, leveraged_rows
from services.site_agent.vault.records.exposure_entries import Addition, Stored
from services.site_agent.vault.records.exposure_record import directions_kept
from services.site_agent.vault.records.known_rows import KnownRows


def data_digest(train: Part) -> str:
    """SHA-256 of the training rows: features, classes and targets."""
    found = hashlib.sha256()
    for array in (train.features, train.classes, train.targets):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def alike_rows(features: FloatArray) -> NDArray[np.intp]:
    """Number of the first row with the same features, (N,): whoever has one row has all that are like it."""
    _, first, group = np.unique(features, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[group.ravel()], dtype=np.intp)


class Exposure:
    """What has been said of one version of the data, in memory."""

    def __init__(
        self, digest: str, n_rows: int, stored: Stored, features: FloatArray | None = None,
        alike: NDArray[np.intp] | None = None, rows: KnownRows | None = None, others: OtherVersions | None = None,
        late: Sequence[bytes] = (),
    ) -> None:
        """``features`` (N, P) of the rows, and ``alike`` (N,) of them; None: nothing is added, figures are only read.

        ``rows``: the rows in every version; ``others`` and ``late``: what was told about other versions, and under
        products, of whatever version.
        """
        seed = int(digest[:16], 16)
        self.digest, self._n_rows = digest, n_rows
        self._alike = np.arange(n_rows) if alike is None else alike
        pairs, differences = set(stored.pairs), set(stored.differences)
        self.differences = Differences(
            n_rows, seed, stored.sketches, pairs, differences, self._alike, features,
            None if rows is None else rows.own, others,
            None if rows is None else late_vectors(self._alike, rows.names, late),
        )
        self._span = Span(n_rows, stored.directions, directions_kept(n_rows), full=stored.span_full)
        self._unaccounted, self._vectors = stored.unaccounted, stored.vectors
        self.left: Left = {}

    def counted(self) -> tuple[int, int]:
        """Rows that differences isolate, and any combination, of the vectors that are accounted for."""
        return len(self.differences.differences), int(leveraged_rows(self._span.leverage[self._alike]).sum())

    def figures(self) -> Figures:
        """The figures as they stand; where an answer said more than its account has, every row counts."""
        count, leverage = self._n_rows, float(self._span.leverage.max())
        if self._unaccounted:
            return Figures(count, count, count, 1.0, count, self._vectors, self._unaccounted)
        by_differences, leveraged = self.counted()
        return Figures(count, len(self.differences.pairs), by_differences, round(leverage, 6), leveraged, self._vectors)

    def add(self, account: RowAccount) -> Addition:
        """Take in an answer."""
        found, sketches, directions = self.differences, list[FloatArray](), list[FloatArray]()
        late = list[bytes]()
        pairs, differences = set(found.pairs), set(found.differences)
        for rows in account.rows:
            found.note(rows)
            kept = found.packed(rows)
            late += [] if kept is None else [kept]
            sketch = found.sketch(rows)
            if found.knows(sketch):
                again = found.renew(sketch)
                sketches += [] if again is None else [again]
                continue
            found.add(sketch)
            sketches.append(sketch)
            self._vectors += 1
            direction = self._span.add(np.bincount(self._alike, rows, self._n_rows).astype(np.float64))
            directions += [] if direction is None else [direction]
        self._unaccounted += not account.whole
        changed = (found.pairs - pairs) | (found.differences - differences)
        isolated = {row: row in found.pairs for row in changed}
        return Addition(
            tuple(sketches), tuple(directions), isolated, self.figures(), self._span.full, self._unaccounted,
            tuple(late),
        )
