"""The record behind the exposure: what has been answered about each version of the data, in a private SQLite file.

One file (mode 0600) in the site's folder. Everything in it is tied to the digest of the training rows, and survives a
restart. It is bounded: of a version it keeps at most N directions of N numbers (fewer for many rows), the sketches of
the last vectors, two sets of row numbers and the runs of a month; of versions, the last few.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from services.contracts.errors import BallastError
from services.site_agent.vault.exposure import SKETCH, Figures

VERSIONS_KEPT = 8  # versions of the data, a run may still go on with an earlier one
SKETCHES_KEPT = 4096  # vectors that a new one is held against, of all runs
MOST_CELLS = 2**22  # numbers of a version's directions: 32 MB
RUNS_KEPT_DAYS = 30

_TABLES = """
CREATE TABLE IF NOT EXISTS version (digest TEXT PRIMARY KEY, rows INTEGER NOT NULL, used TEXT NOT NULL,
    unaccounted INTEGER NOT NULL, span_full INTEGER NOT NULL, vectors INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sketch (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, numbers BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS direction (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, numbers BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS isolated (digest TEXT, row INTEGER, by_pair INTEGER NOT NULL, PRIMARY KEY (digest, row));
CREATE TABLE IF NOT EXISTS run (digest TEXT, run TEXT, began TEXT NOT NULL, answers INTEGER NOT NULL,
    PRIMARY KEY (digest, run));
"""


class ExposureRecordError(BallastError):
    """The record of what was answered cannot be read or written."""

    code = "bad_exposure_record"


@dataclass(frozen=True)
class Stored:
    """What is known of a version of the data: sketches (M, q), directions (r, N), rows isolated, and counts."""

    sketches: FloatArray
    directions: FloatArray
    pairs: frozenset[int] = frozenset()
    differences: frozenset[int] = frozenset()
    unaccounted: int = 0
    span_full: bool = False
    vectors: int = 0


@dataclass(frozen=True)
class Addition:
    """What one answer adds: sketches and directions that are new, and the figures and rows after it."""

    sketches: tuple[FloatArray, ...]
    directions: tuple[FloatArray, ...]
    pairs: Iterable[int]
    differences: Iterable[int]
    figures: Figures
    span_full: bool


@dataclass(frozen=True)
class Budget:
    """Answers of a run about a version of the data, and its other runs that began since a time."""

    answers: int
    other_runs: int


def directions_kept(n_rows: int) -> int:
    """How many directions of the span are kept of ``n_rows`` rows."""
    return max(1, min(n_rows, MOST_CELLS // n_rows))


class ExposureRecord:
    """The file, or a record in memory where no path is given. One writer; readers may look at any time."""

    def __init__(self, path: Path | None) -> None:
        """Open or begin the record; :class:`ExposureRecordError` where that is not possible."""
        self._path = path
        try:
            if path is not None:
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._base = sqlite3.connect(path or ":memory:", check_same_thread=False, timeout=10.0)
            self._base.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise self._error(error) from None

    def stored(self, digest: str, n_rows: int) -> Stored:
        """What is known of a version of the data with ``n_rows`` training rows."""
        known = self._rows("SELECT unaccounted, span_full, vectors FROM version WHERE digest = ?", digest)
        sketches, directions = (
            [np.frombuffer(numbers) for (numbers,) in self._rows(
                f"SELECT numbers FROM {table} WHERE digest = ? ORDER BY number", digest
            )]
            for table in ("sketch", "direction")
        )
        rows = self._rows("SELECT row, by_pair FROM isolated WHERE digest = ?", digest)
        unaccounted, span_full, vectors = known[0] if known else (0, 0, 0)
        return Stored(
            np.array(sketches).reshape(-1, SKETCH), np.array(directions).reshape(-1, n_rows),
            frozenset(row for row, by_pair in rows if by_pair), frozenset(row for row, _ in rows),
            unaccounted, bool(span_full), vectors,
        )

    def budget(self, digest: str, run_id: str, since: str) -> Budget:
        """What was answered already."""
        answers = self._rows("SELECT answers FROM run WHERE digest = ? AND run = ?", digest, run_id)
        others = self._rows(
            "SELECT count(*) FROM run WHERE digest = ? AND run <> ? AND began > ?", digest, run_id, since
        )
        return Budget(answers[0][0] if answers else 0, others[0][0])

    def add(self, digest: str, run_id: str, now: str, forget_before: str, addition: Addition) -> None:
        """Write an answer down, whole or not at all; on the disk when this returns."""
        figures, write = addition.figures, self._base.execute
        try:
            with self._base:
                write(
                    "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET "
                    "used = excluded.used, unaccounted = excluded.unaccounted, "
                    "span_full = excluded.span_full, vectors = excluded.vectors",
                    (digest, figures.rows, now, figures.unaccounted, addition.span_full, figures.vectors),
                )
                for table, vectors in (("sketch", addition.sketches), ("direction", addition.directions)):
                    for vector in vectors:
                        write(f"INSERT INTO {table} (digest, numbers) VALUES (?, ?)", (digest, vector.tobytes()))
                pairs = set(addition.pairs)
                for row in addition.differences:
                    write("INSERT OR REPLACE INTO isolated VALUES (?, ?, ?)", (digest, row, row in pairs))
                write(
                    "INSERT INTO run VALUES (?, ?, ?, 1) ON CONFLICT (digest, run) DO UPDATE SET answers = answers + 1",
                    (digest, run_id, now),
                )
                self._forget(digest, forget_before)
        except sqlite3.Error as error:
            raise self._error(error) from None

    def _forget(self, digest: str, forget_before: str) -> None:
        """Old versions of the data, old runs, and sketches beyond the number kept."""
        write = self._base.execute
        write("DELETE FROM run WHERE began < ?", (forget_before,))
        write(
            "DELETE FROM sketch WHERE digest = ? AND number <= (SELECT number FROM sketch WHERE digest = ? "
            "ORDER BY number DESC LIMIT 1 OFFSET ?)", (digest, digest, SKETCHES_KEPT),
        )
        write(
            "DELETE FROM version WHERE digest NOT IN (SELECT digest FROM version ORDER BY used DESC LIMIT ?)",
            (VERSIONS_KEPT,),
        )
        for table in ("sketch", "direction", "isolated", "run"):
            write(f"DELETE FROM {table} WHERE digest NOT IN (SELECT digest FROM version)")

    def latest(self) -> tuple[str, int, str] | None:
        """Digest, training rows and time of the last answer of the version that was answered about last."""
        found = self._rows("SELECT digest, rows, used FROM version ORDER BY used DESC LIMIT 1")
        return found[0] if found else None

    def runs(self, digest: str) -> list[tuple[str, str, int]]:
        """Run, when it began, and its answers, the latest last."""
        return self._rows("SELECT run, began, answers FROM run WHERE digest = ? ORDER BY began", digest)

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()

    def _rows(self, question: str, *values: object) -> list[Any]:
        try:
            return self._base.execute(question, values).fetchall()
        except sqlite3.Error as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> ExposureRecordError:
        return ExposureRecordError(f"the record of what was answered, {self._path or 'in memory'}, fails: {error}")
