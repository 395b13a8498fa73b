"""Failures of the database server, each as one clear line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from services.contracts.errors import UnavailableError

UPGRADE_COMMAND = "ballast migrate"
"""The command that brings the schema up to date."""
CANNOT_OPEN = "database_cannot_open"
COMMIT_UNKNOWN = "database_commit_unknown"
"""Code of a change of which nobody knows whether it was made: the answer to its commit was lost."""

_SQLITE = {
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_CANTOPEN: "cannot_open",
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_IOERR: "disk",
    sqlite3.SQLITE_CORRUPT: "broken",
    sqlite3.SQLITE_NOTADB: "broken",
}
_NO_ROOM = frozenset({sqlite3.SQLITE_IOERR_SHMSIZE})
"""Errors of the disk by their whole number: no room for the file that readers and writers share, even to read."""
_POSTGRESQL = {
    "25006": "read_only",
    "42P01": "no_table",
    "42703": "no_table",
    "42501": "read_only",
    "53100": "full",
    "58030": "disk",
    "55P03": "busy",
    "40P01": "busy",
}
_SENTENCES = {
    "read_only": "is read-only; nothing was written. Give the service an account and a file that it may write to",
    "cannot_open": "cannot be reached or opened",
    "busy": "was locked by another process for too long; nothing was written. Try again",
    "full": "has no room left on its disk; nothing was written",
    "disk": "could not be read or written: its disk failed; the system's log says how",
    "broken": "cannot be read: not a database of this kind, or damaged",
    "no_table": f"has not the tables that are needed; run `{UPGRADE_COMMAND}`",
}


def describe(engine: Engine) -> str:
    """Where the database is, without its password."""
    if engine.dialect.name == "sqlite":
        return f"the database {str(engine.url.database).removeprefix('file:')}"
    return f"the database {engine.url.set(query={}).render_as_string(hide_password=True)}"


def kind_of(error: DBAPIError) -> str | None:
    """Which of the known failures an error is; None for all others."""
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        number = getattr(cause, "sqlite_errorcode", None)
        if number in _NO_ROOM:
            return "full"
        if number is not None and (kind := _SQLITE.get(number & 0xFF)):
            return kind
        return "no_table" if str(cause).startswith(("no such table", "no such column")) else None
    state = getattr(cause, "sqlstate", None)
    if state is None:
        away = any(each.__name__ == "OperationalError" for each in type(cause).__mro__)  # a timeout is one of its kinds
        return "cannot_open" if error.connection_invalidated or away else None
    if state.startswith(("08", "28", "3D", "57P")):
        return "cannot_open"
    return _POSTGRESQL.get(state)


def commit_unknown(engine: Engine) -> UnavailableError:
    """Error of a change whose commit was asked for, and of which it cannot be told what became."""
    return UnavailableError(
        f"{describe(engine)} was lost while it committed a change, which is made or is not; look before you ask for it "
        "again", code=COMMIT_UNKNOWN,
    )


@contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """Raise :class:`UnavailableError` with one line in place of a server's known failures."""
    try:
        yield
    except (NoConnectionError, DBAPIError) as error:
        # Without a connection: those of the pool all wait for a server that does not answer.
        kind = kind_of(error) if isinstance(error, DBAPIError) else "cannot_open"
        if kind is None:
            raise
        raise UnavailableError(f"{describe(engine)} {_SENTENCES[kind]}", code=f"database_{kind}") from error
