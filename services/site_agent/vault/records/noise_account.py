"""What a plant's noisy answers have told so far of each version of its data, over all runs.

No version is ever forgotten: rows that come back find their account as it was. A row that several versions have was
told of by the answers about all of them, and the account of a version is that of the row of which most was told.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from models.cohorts.accountant import NoiseAccount
from services.site_agent.vault.records.record_table import RecordTable
from services.site_agent.vault.records.version_rows import Shared

_NONE: Shared = MappingProxyType({})
_TABLE = "CREATE TABLE IF NOT EXISTS noise (digest TEXT PRIMARY KEY, rho REAL NOT NULL)"


class NoiseRecord(RecordTable):
    """The table in the file, or in memory where no path is given."""

    def __init__(self, path: Path | None) -> None:
        """Open or begin it; ``ExposureRecordError`` where that is not possible."""
        super().__init__(path, _TABLE, "the account of noisy answers")

    def account(self, digest: str, shared: Shared = _NONE) -> NoiseAccount:
        """The account of a version of the data, of which other versions have the ``shared`` rows."""
        told: Mapping[str, float] = dict(self.read("SELECT digest, rho FROM noise", ()))
        before = sum((told.get(other, 0.0) * rows for other, rows in shared.items()), np.zeros(1))
        return NoiseAccount(told.get(digest, 0.0) + float(before.max()))

    def charge(
        self, digest: str, rho: float, heads: int, epsilon: float, delta: float, shared: Shared = _NONE
    ) -> NoiseAccount:
        """Charge an answer, before it is given; on the disk when this returns.

        ``shared`` as in :meth:`account`.

        Raises
        ------
        ProblemError
            It would tell more than ``(epsilon, delta)``, and nothing is charged.
        ExposureRecordError
            The file fails.
        """
        after = self.account(digest, shared).charged(rho, heads, epsilon, delta)
        self.write(
            "INSERT INTO noise VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET rho = rho + excluded.rho",
            [(digest, rho * heads)],
        )
        return after
