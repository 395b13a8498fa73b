"""Which lifts a plant's answers were told under, of each version of its data, over all runs, and their numbers.

No version is ever forgotten: rows that come back find what was told of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.site_agent.vault.records.record_table import RecordTable

_TABLE = (
    "CREATE TABLE IF NOT EXISTS lift (digest TEXT, kind TEXT, name TEXT, numbers INTEGER NOT NULL, "
    "PRIMARY KEY (digest, kind, name))"
)


class LiftRecord(RecordTable):
    """The table in the file, or in memory where no path is given."""

    def __init__(self, path: Path | None) -> None:
        """Open or begin it; ``ExposureRecordError`` where that is not possible."""
        super().__init__(path, _TABLE, "the record of lifts")

    def told(self, digest: str, kind: str) -> dict[str, int]:
        """Numbers of each lift of a kind, by its name, that answers about a version of the data were told under."""
        return dict(self.read("SELECT name, numbers FROM lift WHERE digest = ? AND kind = ?", (digest, kind)))

    def add(self, digest: str, kind: str, lifts: Mapping[str, int]) -> None:
        """Write lifts down, before anything is told under them; on the disk when this returns."""
        lines = [(digest, kind, name, numbers) for name, numbers in lifts.items()]
        self.write("INSERT OR IGNORE INTO lift VALUES (?, ?, ?, ?)", lines)
