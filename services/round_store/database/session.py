"""Engine and transactions, on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import Session, sessionmaker

from services.contracts.errors import InvalidInputError, UnavailableError
from services.round_store.database.failures import CANNOT_OPEN, commit_unknown, explained
from services.round_store.database.lost_answers import mark_of, was_committed
from services.round_store.database.many_rows import copy_many
from services.round_store.database.standing_servers import CONNECTING, ask_before_use

BUSY_SECONDS = 15.0
"""How long a SQLite writer waits for the one before it, unless whoever opens the store says otherwise."""


LOG_PAGES = 8000
"""Pages of SQLite's log, 32 MB, after which it is written back into the file: a large round is several MB, and with
SQLite's own 1000 every commit of one would write it twice."""


class SessionProvider(Protocol):
    """Where a repository gets its session: a database (each call a transaction) or a unit (all calls one)."""

    def read(self) -> AbstractContextManager[Session]:
        """Session for reading."""

    def write(self) -> AbstractContextManager[Session]:
        """Session for writing; committed on leaving, rolled back on an exception."""

    def write_for_certain(self) -> AbstractContextManager[Session]:
        """The same; a commit whose answer was lost is looked for."""


class Repository:
    """Rows of one kind; each method is one transaction, or a part of the one that the scope holds."""

    def __init__(self, scope: SessionProvider) -> None:
        self._scope = scope


class Database:
    """Opens one transaction for each call. Safe to share between threads; make one for each process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._reading = sessionmaker(engine, expire_on_commit=False)
        self._writing = sessionmaker(engine.execution_options(ballast_writes=True), expire_on_commit=False)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Session for reading, which sees one state of the database throughout on SQLite."""
        with explained(self.engine), self._reading.begin() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Session for writing. SQLite gives the write lock at the start, so no reader has to be turned away later."""
        with explained(self.engine), self._writing.begin() as session:
            yield session

    @contextmanager
    def write_for_certain(self) -> Iterator[Session]:
        """As :meth:`write`, for one query more; a commit whose answer was lost is looked for.

        ``UnavailableError`` says what it says elsewhere, that nothing was written; where the server does not come back
        in time its code is ``COMMIT_UNKNOWN``.
        """
        mark = None
        try:
            with self.write() as session:
                yield session
                session.flush()
                mark = mark_of(session)
        except UnavailableError as error:
            if mark is None or error.code != CANNOT_OPEN:
                raise
            stands = was_committed(self.engine, mark)
            if stands is None:
                raise commit_unknown(self.engine) from error
            if not stands:
                raise

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


class UnitOfWork:
    """Several calls in one transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Session of the unit, with what it wrote so far."""
        yield self._session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Session of the unit; its owner commits."""
        yield self._session

    write_for_certain = write


def utc_now(session: Session) -> datetime:
    """Time by the database's clock.

    Leases are compared between processes that may run on different hosts; with PostgreSQL its clock is the one that
    all of them share. All processes on a SQLite file are on one host, so there their own clock is.
    """
    if session.get_bind().dialect.name == "postgresql":
        moment: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)
    return datetime.now(UTC)


def make_engine(url: str | URL, *, create: bool = False, busy_seconds: float = BUSY_SECONDS) -> Engine:
    """Engine of a URL; connects to nothing yet.

    Parameters
    ----------
    url : ``sqlite:///relative.db``, ``sqlite:////absolute.db`` (``?mode=ro`` opens it read-only) or
        ``postgresql://user:password@host:port/name``.
    create : whether a SQLite file that is not there may be created: only migrations do.
    busy_seconds : how long a SQLite writer waits for the one before it.

    Raises
    ------
    InvalidInputError
        For any other URL.
    """
    parsed = _parse(url)
    options: dict[str, Any] = {"json_serializer": _to_json}
    if parsed.get_backend_name() == "postgresql":
        server = parsed.set(drivername="postgresql+psycopg")
        engine = create_engine(server, connect_args=CONNECTING, pool_pre_ping=True, **options)
        ask_before_use(engine)  # a file is never cut off
        copy_many(engine)
        return engine
    mode = parsed.query.get("mode", "rwc" if create else "rw")
    path = quote(str(Path(str(parsed.database)).absolute()))
    target = URL.create("sqlite", database=f"file:{path}", query={"mode": str(mode), "uri": "true"})
    engine = create_engine(target, connect_args={"timeout": busy_seconds}, **options)
    event.listen(engine, "connect", _on_sqlite_connect)
    event.listen(engine, "begin", _on_sqlite_begin)
    return engine


def _parse(url: str | URL) -> URL:
    wanted = "give sqlite:///path/to/file.db or postgresql://user:password@host:port/name"
    try:
        parsed = make_url(url.replace("postgres://", "postgresql://", 1) if isinstance(url, str) else url)
    except (ArgumentError, ValueError):  # of a port that is no number
        raise InvalidInputError(f"the database URL cannot be read; {wanted}") from None
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise InvalidInputError(f"no support for a database of kind {backend}; {wanted}")
    if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise InvalidInputError(f"a SQLite database in memory cannot be shared by several processes; {wanted}")
    return parsed


def _to_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _on_sqlite_connect(connection: sqlite3.Connection, _record: object) -> None:
    """Write-ahead log, so that readers and the writer do not wait for one another; transactions begin by our word."""
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
    _write_ahead(connection)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the log over; SQLite does not wait by itself for another process that does so at the same moment."""
    deadline = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode & 0xFF
            if code == sqlite3.SQLITE_READONLY:
                return
            if code != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _on_sqlite_begin(connection: Connection) -> None:
    """Begin explicitly: the driver by itself would not, before DDL, and its late write lock can fail unfairly."""
    writes = connection.get_execution_options().get("ballast_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
