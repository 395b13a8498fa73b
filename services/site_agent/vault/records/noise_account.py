"""What a plant's noisy answers have told so far of each version of its data, over all runs.

No version is ever forgotten: rows that come back find their account as it was.
"""

from __future__ import annotations

from pathlib import Path

from models.cohorts.accountant import NoiseAccount
from services.site_agent.vault.records.record_table import RecordTable

_TABLE = "CREATE TABLE IF NOT EXISTS noise (digest TEXT PRIMARY KEY, rho REAL NOT NULL)"


class NoiseRecord(RecordTable):
    """The table in the file, or in memory where no path is given."""

    def __init__(self, path: Path | None) -> None:
        """Open or begin it; ``ExposureRecordError`` where that is not possible."""
        super().__init__(path, _TABLE, "the account of noisy answers")

    def account(self, digest: str) -> NoiseAccount:
        """The account of a version of the data."""
        found = self.read("SELECT rho FROM noise WHERE digest = ?", (digest,))
        return NoiseAccount(found[0][0]) if found else NoiseAccount()

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
        self.write("INSERT OR REPLACE INTO noise VALUES (?, ?)", [(digest, after.rho)])
        return after
