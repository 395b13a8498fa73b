"""Which lifts a plant's answers were told under, of each version of its data, over all runs, and their numbers.

It is a table in the file of :mod:`services.site_agent.vault.exposure_record`; a file of before has none, and gets it.
No version is ever forgotten: rows that come back find what was told of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from services.contracts.errors import UnavailableError
from services.site_agent.vault.exposure_record import ExposureRecordError
from services.site_agent.vault.private_database import closed, opened

_TABLE = (
    "CREATE TABLE IF NOT EXISTS lift (digest TEXT, kind TEXT, name TEXT, numbers INTEGER NOT NULL, "
    "PRIMARY KEY (digest, kind, name))"
)


class LiftRecord:
    """The table in the file, or in memory where no path is given."""

    def __init__(self, path: Path | None) -> None:
        """Open or begin it; :class:`ExposureRecordError` where that is not possible."""
        self._path = path
        try:
            self._base = opened(path, _TABLE)
        except (UnavailableError, sqlite3.Error) as error:
            raise self._error(error) from None

    def told(self, digest: str, kind: str) -> dict[str, int]:
        """Numbers of each lift of a kind, by its name, that answers about a version of the data were told under."""
        try:
            found = self._base.execute("SELECT name, numbers FROM lift WHERE digest = ? AND kind = ?", (digest, kind))
            return dict(found.fetchall())
        except sqlite3.Error as error:
            raise self._error(error) from None

    def add(self, digest: str, kind: str, lifts: Mapping[str, int]) -> None:
        """Write lifts down, before anything is told under them; on the disk when this returns."""
        try:
            with self._base:
                self._base.executemany(
                    "INSERT OR IGNORE INTO lift VALUES (?, ?, ?, ?)",
                    [(digest, kind, name, numbers) for name, numbers in lifts.items()],
                )
        except sqlite3.Error as error:
            raise self._error(error) from None

    def close(self) -> None:
        """Let go of the file."""
        closed(self._base)

    def _error(self, error: Exception) -> ExposureRecordError:
        return ExposureRecordError(f"the record of lifts, {self._path or 'in memory'}, fails: {error}")
