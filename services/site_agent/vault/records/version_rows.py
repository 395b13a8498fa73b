"""Which rows the versions of the data had that an account speaks of: what was told of a row counts in all of them.

A version that has one row more, or the same ones in another order, has another digest; its other rows are the same.
They are known by keyed numbers of their readings, whatever the ranges, class or target, and no readings are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.site_agent.vault.dataset import Part
from services.site_agent.vault.records.record_table import RecordTable

VERSIONS_KEPT: Final = 512
"""The latest of which anything new was told: 8 bytes a row of each."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS version_rows (number INTEGER PRIMARY KEY, digest TEXT UNIQUE NOT NULL, "
    "rows BLOB NOT NULL)"
)
_NOTE = "INSERT OR IGNORE INTO version_rows (digest, rows) VALUES (?, ?)"
_FORGET = (
    "DELETE FROM version_rows WHERE number <= "
    "(SELECT number FROM version_rows ORDER BY number DESC LIMIT 1 OFFSET ?)"
)

Shared = Mapping[str, NDArray[np.bool_]]
"""Which rows (N,) of a version another one has too, by the other's digest; of those that have any."""


class VersionRows(RecordTable):
    """The table in the file, or in memory where no path is given."""

    def __init__(self, path: Path | None, secret: bytes) -> None:
        """Open or begin it; ``ExposureRecordError`` where that is not possible."""
        super().__init__(path, _TABLE, "the record of the rows of each version")
        self._key = hashlib.blake2b(secret, digest_size=32).digest()
        self._last: tuple[str, Shared] | None = None

    def note(self, digest: str, train: Part) -> None:
        """Keep the rows of a version, before anything is told of them; on the disk when this returns."""
        if not self.read("SELECT 1 FROM version_rows WHERE digest = ?", (digest,)):
            self.write(_NOTE, [(digest, np.unique(self._numbers(train)).tobytes())])
            self.write(_FORGET, [(VERSIONS_KEPT,)])

    def shared(self, digest: str, train: Part) -> Shared:
        """The other versions that have some of the rows of a version."""
        if self._last is None or self._last[0] != digest:
            own = self._numbers(train)
            others = self.read("SELECT digest, rows FROM version_rows WHERE digest <> ?", (digest,))
            found = {name: np.isin(own, np.frombuffer(rows, dtype=np.uint64)) for name, rows in others}
            self._last = (digest, {name: rows for name, rows in found.items() if rows.any()})
        return self._last[1]

    def _numbers(self, train: Part) -> NDArray[np.uint64]:
        """A number (N,) of each row that says nothing without the secret."""
        keyed = (hashlib.blake2b(mark.tobytes(), key=self._key, digest_size=8).digest() for mark in train.marks)
        return np.frombuffer(b"".join(keyed), dtype=np.uint64)
