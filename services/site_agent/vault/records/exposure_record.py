"""The record behind the exposure: what has been answered about each version of the data, in a private SQLite file.

One file (mode 0600) in the site's folder. Everything in it is tied to the digest of the training rows, and survives a
restart. It is bounded: of a version it keeps at most N directions of N numbers (fewer for many rows), the sketches of
the last vectors, two sets of row numbers, the last questions that were not answered by the exact cut, and the runs of a
month with the models that each was told of; of versions, the last few. The last sketches of all stay when their version
goes, and keyed numbers of the rows of all versions (``known_rows``). The secret that the guard draws by is made with
the file.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from models.basics import FloatArray
from services.contracts.errors import BallastError, UnavailableError
from services.site_agent.vault.isolation.few_rows import LATE
from services.site_agent.vault.isolation.other_versions import OtherVersions
from services.site_agent.vault.isolation.sketches import told_of_rows, whole
from services.site_agent.vault.records.exposure_entries import Addition, Budget, Stored
from services.site_agent.vault.records.known_rows import TABLE, KnownRows, known_rows
from services.site_agent.vault.records.private_database import closed, looked_at, opened

VERSIONS_KEPT = 8  # versions of the data, a run may still go on with an earlier one
SKETCHES_KEPT = 4096  # vectors that a new one is held against, of all runs
MOST_CELLS = 2**22  # numbers of a version's directions: 32 MB
RUNS_KEPT_DAYS = 30  # decision 91: refusals that isolate count for as long
FORGET_EVERY = 32
"""Answers of a run between two looks for what is no longer kept; the first of a run is one."""

_TABLES = """
CREATE TABLE IF NOT EXISTS version (digest TEXT PRIMARY KEY, rows INTEGER NOT NULL, used TEXT NOT NULL,
    unaccounted INTEGER NOT NULL, span_full INTEGER NOT NULL, vectors INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sketch (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, numbers BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS direction (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, numbers BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS isolated (digest TEXT, row INTEGER, by_pair INTEGER NOT NULL, PRIMARY KEY (digest, row));
CREATE TABLE IF NOT EXISTS run (digest TEXT, run TEXT, began TEXT NOT NULL, answers INTEGER NOT NULL,
    PRIMARY KEY (digest, run));
CREATE TABLE IF NOT EXISTS told (digest TEXT, run TEXT, part TEXT, model BLOB,
    PRIMARY KEY (digest, run, part, model));
CREATE TABLE IF NOT EXISTS secret (one INTEGER PRIMARY KEY CHECK (one = 1), bytes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS choice (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, question BLOB UNIQUE NOT NULL,
    candidate NOT NULL);
CREATE TABLE IF NOT EXISTS late (number INTEGER PRIMARY KEY, vector BLOB NOT NULL);
""" + TABLE


class ExposureRecordError(BallastError):
    """The record of what was answered cannot be read or written."""

    code = "bad_exposure_record"


def directions_kept(n_rows: int) -> int:
    """How many directions of the span are kept of ``n_rows`` rows."""
    return max(1, min(n_rows, MOST_CELLS // n_rows))


def new_secret() -> bytes:
    """What a vault's guard draws by from its first day on."""
    return secrets.token_bytes(32)


class ExposureRecord:
    """The file, or a record in memory where no path is given. One writer; readers may look at any time."""

    def __init__(self, path: Path | None, *, looking: bool = False) -> None:
        """Open or begin the record, or only look at it; :class:`ExposureRecordError` where that is not possible."""
        self._path = path
        try:
            if looking:
                self._base = looked_at(path, _TABLES)
                return
            self._base = opened(path, _TABLES)
            with self._base:
                self._base.execute("INSERT OR IGNORE INTO secret VALUES (1, ?)", (new_secret(),))
        except (UnavailableError, sqlite3.Error) as error:
            raise self._error(error) from None

    def stored(self, digest: str, n_rows: int) -> Stored:
        """What is known of a version of the data with ``n_rows`` training rows."""
        known = self._rows("SELECT unaccounted, span_full, vectors FROM version WHERE digest = ?", digest)
        sketches, directions = (  # a sketch that was told again stands there once more: the last time counts
            [np.frombuffer(numbers) for (numbers,) in self._rows(
                f"SELECT numbers FROM {table} WHERE digest = ? GROUP BY numbers ORDER BY max(number)", digest
            )]
            for table in ("sketch", "direction")
        )
        rows = self._rows("SELECT row, by_pair FROM isolated WHERE digest = ?", digest)
        unaccounted, span_full, vectors = known[0] if known else (0, 0, 0)
        return Stored(
            whole(sketches), np.array(directions).reshape(-1, n_rows),
            frozenset(row for row, by_pair in rows if by_pair), frozenset(row for row, _ in rows),
            unaccounted, bool(span_full), vectors,
        )

    def rows(self, own: FloatArray) -> KnownRows:
        """Rows of a version by their numbers (N, q), which are taken in, beside those of other versions."""
        try:
            return known_rows(self._base, own)
        except sqlite3.Error as error:
            raise self._error(error) from None

    def late(self) -> list[bytes]:
        """What is kept of the last vectors that left under products, the latest last."""
        return [kept for (kept,) in self._rows("SELECT vector FROM late ORDER BY number")]

    def others(self, digest: str, rows: KnownRows) -> OtherVersions | None:
        """What was told about other versions of the data, None where nothing was."""
        told = self._rows(
            "SELECT numbers FROM (SELECT number, numbers FROM sketch WHERE digest <> ? ORDER BY number DESC LIMIT ?) "
            "ORDER BY number", digest, SKETCHES_KEPT,
        )
        vectors, kinds = told_of_rows(whole([np.frombuffer(each) for (each,) in told]))
        return OtherVersions(rows.own, rows.gone, rows.gone_names, vectors, kinds) if len(vectors) else None

    def budget(self, digest: str, run_id: str, since: str) -> Budget:
        """What was answered already; a run that goes on about another version of the data is one more."""
        answers = self._rows("SELECT answers FROM run WHERE digest = ? AND run = ?", digest, run_id)
        others = self._rows(
            "SELECT count(*) FROM run WHERE NOT (digest = ? AND run = ?) AND began > ?", digest, run_id, since
        )
        return Budget(answers[0][0] if answers else 0, others[0][0])

    def secret(self) -> bytes:
        """What the guard draws by: 32 random bytes, the same as long as the file is."""
        return bytes(self._rows("SELECT bytes FROM secret")[0][0])

    def choice(self, question: bytes) -> int | bytes | None:
        """What answered a question in place of the exact cut: the number of a candidate, or an earlier cut, whole."""
        found = self._rows("SELECT candidate FROM choice WHERE question = ?", question)
        return found[0][0] if found else None

    def count_models(
        self, digest: str, run_id: str, now: str, part: str, models: Collection[bytes], most: int
    ) -> bool:
        """Write down models that a run is told of, a part of the rows by its name; False, and nothing, beyond ``most``.

        The run is known from then on, before its first answer.

        On the disk when this returns.
        """
        try:
            with self._base:
                self._base.execute("INSERT OR IGNORE INTO run VALUES (?, ?, ?, 0)", (digest, run_id, now))
                for model in models:
                    self._base.execute("INSERT OR IGNORE INTO told VALUES (?, ?, ?, ?)", (digest, run_id, part, model))
                ((known,),) = self._base.execute(
                    "SELECT count(*) FROM told WHERE digest = ? AND run = ? AND part = ?", (digest, run_id, part)
                ).fetchall()
                if known > most:
                    self._base.rollback()
                    return False
                return True
        except sqlite3.Error as error:
            raise self._error(error) from None

    def told(self, digest: str, run_id: str, part: str) -> int:
        """Of how many models, or the like, a run was told something."""
        found = self._rows("SELECT count(*) FROM told WHERE digest = ? AND run = ? AND part = ?", digest, run_id, part)
        return int(found[0][0])

    def told_in_all(self, digest: str, part: str) -> int:
        """The same of all runs together, each model once."""
        found = self._rows("SELECT count(DISTINCT model) FROM told WHERE digest = ? AND part = ?", digest, part)
        return int(found[0][0])

    def add(
        self, digest: str, run_id: str, now: str, forget_before: str, addition: Addition,
        choices: Mapping[bytes, int | bytes] = MappingProxyType({}),
    ) -> None:
        """Write an answer down, whole or not at all; on the disk when this returns."""
        figures, write = addition.figures, self._base.execute
        try:
            with self._base:
                write(
                    "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET "
                    "used = excluded.used, unaccounted = excluded.unaccounted, "
                    "span_full = excluded.span_full, vectors = excluded.vectors",
                    (digest, figures.rows, now, addition.unaccounted, addition.span_full, figures.vectors),
                )
                for table, vectors in (("sketch", addition.sketches), ("direction", addition.directions)):
                    for vector in vectors:
                        write(f"INSERT INTO {table} (digest, numbers) VALUES (?, ?)", (digest, vector.tobytes()))
                for kept in addition.late:
                    write("INSERT INTO late (vector) VALUES (?)", (kept,))
                for question, candidate in choices.items():
                    write(
                        "INSERT OR REPLACE INTO choice (digest, question, candidate) VALUES (?, ?, ?)",
                        (digest, question, candidate),
                    )
                for row, by_pair in addition.isolated.items():
                    write("INSERT OR REPLACE INTO isolated VALUES (?, ?, ?)", (digest, row, by_pair))
                ((answers,),) = write(
                    "INSERT INTO run VALUES (?, ?, ?, 1) ON CONFLICT (digest, run) DO UPDATE SET answers = answers + 1 "
                    "RETURNING answers", (digest, run_id, now),
                ).fetchall()
                if answers % FORGET_EVERY == 1:
                    self._forget(digest, forget_before, min(LATE, directions_kept(figures.rows)))
        except sqlite3.Error as error:
            raise self._error(error) from None

    def _forget(self, digest: str, forget_before: str, late: int) -> None:
        """Old versions of the data, old runs, and sketches and late vectors beyond the number kept."""
        write = self._base.execute
        write("DELETE FROM run WHERE began < ?", (forget_before,))
        for table in ("sketch", "choice"):
            write(
                f"DELETE FROM {table} WHERE digest = ? AND number <= (SELECT number FROM {table} WHERE digest = ? "
                "ORDER BY number DESC LIMIT 1 OFFSET ?)", (digest, digest, SKETCHES_KEPT),
            )
        write(
            "DELETE FROM version WHERE digest NOT IN (SELECT digest FROM version ORDER BY used DESC LIMIT ?)",
            (VERSIONS_KEPT,),
        )
        write(
            "DELETE FROM late WHERE number <= (SELECT number FROM late ORDER BY number DESC LIMIT 1 OFFSET ?)", (late,)
        )
        write(
            "DELETE FROM sketch WHERE digest NOT IN (SELECT digest FROM version) AND number <= "
            "(SELECT number FROM sketch ORDER BY number DESC LIMIT 1 OFFSET ?)", (SKETCHES_KEPT,),
        )
        for table in ("direction", "isolated", "choice", "told"):
            write(f"DELETE FROM {table} WHERE digest NOT IN (SELECT digest FROM version)")
        write("DELETE FROM told WHERE (digest, run) NOT IN (SELECT digest, run FROM run)")

    def latest(self) -> tuple[str, int, str] | None:
        """Digest, training rows and time of the last answer of the version that was answered about last."""
        found = self._rows("SELECT digest, rows, used FROM version ORDER BY used DESC LIMIT 1")
        return found[0] if found else None

    def runs(self, digest: str) -> list[tuple[str, str, int]]:
        """Run, when it began, and its answers, the latest last."""
        return self._rows("SELECT run, began, answers FROM run WHERE digest = ? ORDER BY began", digest)

    def close(self) -> None:
        """Let go of the file."""
        closed(self._base)

    def _rows(self, question: str, *values: object) -> list[Any]:
        try:
            return self._base.execute(question, values).fetchall()
        except sqlite3.Error as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> ExposureRecordError:
        return ExposureRecordError(f"the record of what was answered, {self._path or 'in memory'}, fails: {error}")
