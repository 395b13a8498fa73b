"""What a plant's noisy answers have told so far of each version of its data, over all runs.

It is a table in the file of :mod:`services.site_agent.vault.exposure_record`. No version is ever forgotten: rows that
come back find their account as it was.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from models.cohorts.accountant import NoiseAccount
from services.contracts.errors import UnavailableError
from services.site_agent.vault.exposure_record import ExposureRecordError
from services.site_agent.vault.private_database import closed, opened

_TABLE = "CREATE TABLE IF NOT EXISTS noise (digest TEXT PRIMARY KEY, rho REAL NOT NULL)"


class NoiseRecord:
    """The table in the file, or in memory where no path is given."""

    def __init__(self, path: Path | None) -> None:
        """Open or begin it; :class:`ExposureRecordError` where that is not possible."""
        self._path = path
        try:
            self._base = opened(path, _TABLE)
        except (UnavailableError, sqlite3.Error) as error:
            raise self._error(error) from None

    def account(self, digest: str) -> NoiseAccount:
        """The account of a version of the data."""
        try:
            found = self._base.execute("SELECT rho FROM noise WHERE digest = ?", (digest,)).fetchone()
        except sqlite3.Error as error:
            raise self._error(error) from None
        return NoiseAccount(found[0]) if found else NoiseAccount()

    def charge(self, digest: str, rho: float, heads: int, epsilon: float, delta: float) -> NoiseAccount:
        """Charge an answer, before it is given; on the disk when this returns.

        Raises
        ------
        ProblemError
            It would tell more than ``(epsilon, delta)``, and nothing is charged.
        ExposureRecordError
            The file fails.
        """
        after = self.account(digest).charged(rho, heads, epsilon, delta)
        try:
            with self._base:
                self._base.execute("INSERT OR REPLACE INTO noise VALUES (?, ?)", (digest, after.rho))
        except sqlite3.Error as error:
            raise self._error(error) from None
        return after

    def close(self) -> None:
        """Let go of the file."""
        closed(self._base)

    def _error(self, error: Exception) -> ExposureRecordError:
        return ExposureRecordError(f"the account of noisy answers, {self._path or 'in memory'}, fails: {error}")
