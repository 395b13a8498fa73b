"""Upgrade and downgrade, each in one transaction on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from services.contracts.errors import ConflictError
from services.round_store.database.failures import describe, explained, kind_of
from services.round_store.database.session import make_engine

LOCK = 0x42414C4C
"""PostgreSQL advisory lock that migrations take turns on."""


def upgrade(url: str, revision: str = "head") -> str:
    """Bring a database to a revision, making a SQLite file that is not there; return the revision it is at then.

    A failure leaves the database as it was. Raises ``UnavailableError`` when the database cannot be written, and
    ``ConflictError`` when a newer version of the service wrote it.
    """
    with _transaction(url) as connection:
        _run(connection, command.upgrade, revision)
        return _current(connection) or ""


def downgrade(url: str, revision: str) -> str | None:
    """Take a database that is there back to a revision; ``base`` drops every table."""
    with _transaction(url, create=False) as connection:
        _run(connection, command.downgrade, revision)
        return _current(connection)


def current(url: str) -> str | None:
    """Revision that a database is at; None before the first migration."""
    engine = make_engine(url)
    try:
        with explained(engine), engine.connect() as connection:
            return _current(connection)
    finally:
        engine.dispose()


def head() -> str:
    """Newest revision."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def _config(connection: Connection | None = None) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


@contextmanager
def _transaction(url: str, *, create: bool = True) -> Iterator[Connection]:
    """One transaction around all migrations, DDL included; foreign keys are checked at its end."""
    engine = make_engine(url, create=create)
    try:
        with explained(engine), engine.execution_options(ballast_writes=True).connect() as connection:
            sqlite = engine.dialect.name == "sqlite"
            if sqlite:
                # A table made anew is dropped in between, which must not delete what refers to it.
                connection.connection.cursor().execute("PRAGMA foreign_keys=OFF")
            with connection.begin():
                if not sqlite:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
                _refuse_newer(connection, engine)
                try:
                    yield connection
                except CommandError as error:
                    raise ConflictError(f"{describe(engine)} cannot be migrated: {error}") from error
                except DBAPIError as error:
                    if kind_of(error) is not None:
                        raise
                    line = str(error.orig).splitlines()[0]
                    raise ConflictError(
                        f"{describe(engine)} cannot be migrated: {line}; nothing was changed"
                    ) from error
                if sqlite and (broken := connection.execute(text("PRAGMA foreign_key_check")).all()):
                    tables = ", ".join(sorted({str(row[0]) for row in broken}))
                    raise ConflictError(f"{describe(engine)} would lose references in {tables}; nothing was changed")
    finally:
        engine.dispose()


def _refuse_newer(connection: Connection, engine: Engine) -> None:
    found = _current(connection)
    if found is not None and found > head():
        raise ConflictError(
            f"{describe(engine)} is at schema {found}, written by a newer version than this one, which knows {head()}; "
            "install the newer version; nothing was changed",
            code="database_too_new",
        )


def _run(connection: Connection, what: Any, revision: str) -> None:
    what(_config(connection), revision)


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
