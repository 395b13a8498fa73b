"""The rows of all versions of the data that anything was told about, as numbers that say nothing without the secret.

Of a row that left the data its readings are not kept: its numbers (``isolation.other_versions.row_numbers``) are a
keyed digest, by which an answer about the rows that are left is held from showing it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from services.site_agent.vault.isolation.sketches import OF_READINGS

TABLE = (
    "CREATE TABLE IF NOT EXISTS known_row (number INTEGER PRIMARY KEY, numbers BLOB UNIQUE NOT NULL, "
    "seen INTEGER NOT NULL);"
)
ROWS_KEPT = 2**18
"""Rows that are kept, those last that were seen in a version last: 24 MB."""


@dataclass(frozen=True)
class KnownRows:
    """Rows of one version, by their numbers in any: own (N, q) with names (N,), and those that are gone (G, q) (G,).

    Names are above 0, but of own rows beyond :data:`ROWS_KEPT`, which no other version will know.
    """

    own: FloatArray
    names: NDArray[np.int64]
    gone: FloatArray
    gone_names: NDArray[np.int64]


def known_rows(base: sqlite3.Connection, own: FloatArray) -> KnownRows:
    """Take in the rows of a version, ``own`` (N, q); with their names, and all others that are known.

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
    found = base.execute("SELECT number, numbers, seen FROM known_row ORDER BY number").fetchall()
    name = {numbers: number for number, numbers, _ in found}
    gone = [(number, np.frombuffer(numbers)) for number, numbers, seen in found if seen <= last]
    return KnownRows(
        own, np.array([name.get(row.tobytes(), -1 - at) for at, row in enumerate(own)], dtype=np.int64),
        np.array([numbers for _, numbers in gone]).reshape(-1, OF_READINGS),
        np.array([number for number, _ in gone], dtype=np.int64),
    )
