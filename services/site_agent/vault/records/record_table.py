"""A table of its own in the file of ``records.exposure_record``, and its failures in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from services.contracts.errors import UnavailableError
from services.site_agent.vault.records.exposure_record import ExposureRecordError
from services.site_agent.vault.records.private_database import closed, looked_at, opened


class RecordTable:
    """One table in the file, or in memory where no path is given; a file of before has none, and gets it."""

    def __init__(self, path: Path | None, table: str, what: str, *, looking: bool = False) -> None:
        """Open or begin it by its statement, or only look at it.

        ``what`` it is, in the words of an :class:`ExposureRecordError`.
        """
        self._path, self._what = path, what
        try:
            self._base = (looked_at if looking else opened)(path, table)
        except (UnavailableError, sqlite3.Error) as error:
            raise self._error(error) from None

    def read(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All lines of an answer; :class:`ExposureRecordError`."""
        try:
            return self._base.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._error(error) from None

    def write(self, statement: str, lines: Sequence[Sequence[Any]]) -> None:
        """Write lines, all or none; on the disk when this returns. :class:`ExposureRecordError`."""
        try:
            with self._base:
                self._base.executemany(statement, lines)
        except sqlite3.Error as error:
            raise self._error(error) from None

    def close(self) -> None:
        """Let go of the file."""
        closed(self._base)

    def _error(self, error: Exception) -> ExposureRecordError:
        return ExposureRecordError(f"{self._what}, {self._path or 'in memory'}, fails: {error}")
