"""Rows that come and go by groups: what a policy's ``min_new_rows`` keeps of the table back, and remembers of it.

Rows are known by keyed numbers of their readings, class and target, which say nothing without the vault's secret. A row
that was seen stays in the part, training or held out, in which it came, where the source does not say the part itself:
the share of a class that is held out would move one row or two whenever others come.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from services.site_agent.vault.dataset import Dataset, Part
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.isolation.row_groups import next_version
from services.site_agent.vault.records.record_table import RecordTable

_TABLE = "CREATE TABLE IF NOT EXISTS row_group (row INTEGER PRIMARY KEY, number INTEGER NOT NULL, held_out INTEGER)"
_WRITE = "INSERT INTO row_group VALUES (?, ?, ?) ON CONFLICT (row) DO UPDATE SET number = excluded.number"


class RowBatches(RecordTable):
    """The table in the file, or in memory where no path is given."""

    def __init__(self, path: Path | None, secret: bytes, least: int, *, looking: bool = False) -> None:
        """Open or begin it, or only look; rows are in groups of ``least`` or more. ``ExposureRecordError``."""
        super().__init__(path, _TABLE, "the record of rows that came together", looking=looking)
        self._key, self._least = hashlib.blake2b(secret, digest_size=32).digest(), least
        self._looking = looking

    def seen(self, dataset: Dataset) -> Dataset:
        """What a run that begins now may see of the table as it is; on the disk when this returns, but to who looks.

        Raises
        ------
        VaultError
            No row may be seen yet.
        ExposureRecordError
            The record cannot be read or written.
        """
        if self._least == 1:
            return dataset
        known = {row: (number, bool(part)) for row, number, part in self.read("SELECT * FROM row_group", ())}
        table = dataset.train.followed_by(dataset.test)
        held_out = np.arange(len(table)) >= len(dataset.train)
        rows = self._numbers(table, None if dataset.by_hash else held_out)
        if dataset.by_hash:
            held_out = np.array([known.get(row, (0, part))[1] for row, part in zip(rows, held_out, strict=True)], bool)
        strata = zip(held_out.tolist(), table.classes.tolist(), (~np.isnan(table.targets)).tolist(), strict=True)
        by_row = dict(zip(rows, strata, strict=True))
        groups, inside = next_version({row: number for row, (number, _) in known.items()}, by_row, self._least)
        parts = {row: known[row][1] if row in known else by_row[row][0] for row in groups}
        if not self._looking:
            self.write(_WRITE, [(row, number, parts[row]) for row, number in groups.items()])
        is_in = np.array([row in inside for row in rows])
        if not (is_in & ~held_out).any():
            raise VaultError(f"no {self._least} rows have come together yet (min_new_rows)", "no_data")
        return Dataset(
            table.chosen(is_in & ~held_out), table.chosen(is_in & held_out), dataset.clipped, dataset.absent,
            dataset.by_hash,
        )

    def _numbers(self, table: Part, held_out: NDArray[np.bool_] | None) -> list[int]:
        """A number for each row, other ones for its copies; with the part where the source says it."""
        met: Counter[bytes] = Counter()
        found: list[int] = []
        parts = np.zeros(len(table), dtype=np.bool_) if held_out is None else held_out
        outcomes = np.column_stack([table.classes.astype(np.float64), table.targets, parts])
        for mark, outcome in zip(table.marks, outcomes, strict=True):
            row = mark.tobytes() + outcome.tobytes()
            met[row] += 1
            number = hashlib.blake2b(row + met[row].to_bytes(8, "little"), key=self._key, digest_size=8).digest()
            found.append(int.from_bytes(number, "little", signed=True))
        return found
