"""The rows of all versions of the data that anything was told about, as numbers that say nothing without the secret.

Of a row that left the data its readings are not kept: its numbers (:func:`services.site_agent.vault.other_versions.
row_numbers`) are a keyed digest, by which an answer about the rows that are left is held from showing it.
"""

from __future__ import annotations

import sqlite3

import numpy as np

from models.basics import FloatArray
from services.site_agent.vault.other_versions import OF_READINGS

TABLE = (
    "CREATE TABLE IF NOT EXISTS known_row (number INTEGER PRIMARY KEY, numbers BLOB UNIQUE NOT NULL, "
    "seen INTEGER NOT NULL);"
)
ROWS_KEPT = 2**18
"""Rows that are kept, those last that were seen in a version last: 24 MB."""


def rows_beside(base: sqlite3.Connection, own: FloatArray) -> tuple[FloatArray, list[int]]:
    """Take in the rows of a version, ``own`` (N, q); the others (G, q) that are known, and their names below 0.

    On the disk when this returns; ``sqlite3.Error``.
    """
    mine = dict.fromkeys(row.tobytes() for row in np.ascontiguousarray(own))
    with base:
        ((last,),) = base.execute("SELECT coalesce(max(seen), 0) FROM known_row").fetchall()
        base.executemany(
            "INSERT INTO known_row (numbers, seen) VALUES (?, ?) ON CONFLICT (numbers) DO UPDATE SET "
            "seen = excluded.seen", [(row, last + 1) for row in mine],
        )
        base.execute(
            "DELETE FROM known_row WHERE number IN "
            "(SELECT number FROM known_row ORDER BY seen DESC, number DESC LIMIT -1 OFFSET ?)", (ROWS_KEPT,),
        )
    found = base.execute("SELECT number, numbers FROM known_row WHERE seen <= ? ORDER BY number", (last,)).fetchall()
    gone = [np.frombuffer(numbers) for _, numbers in found]
    return np.array(gone).reshape(-1, OF_READINGS), [-number for number, _ in found]
