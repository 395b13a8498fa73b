"""Checks, before a service starts, that the database is there, up to date and writable."""

from __future__ import annotations

from sqlalchemy import Engine, inspect, text, update

from services.contracts.errors import UnavailableError
from services.round_store.database.failures import UPGRADE_COMMAND, describe, explained
from services.round_store.tables.audit import AuditHeadRow

SCHEMA_REVISION = "0018"
"""The revision of the migrations that the tables of this version stand at."""


OLDEST_POSTGRESQL = 13
"""It can be asked what became of a transaction (``database.lost_answers``)."""


def check_schema(engine: Engine, *, writable: bool = True) -> None:
    """Raise :class:`UnavailableError` with what to do when the database cannot be used as it is; change nothing."""
    with explained(engine):
        found = _revision(engine)
        server = engine.dialect.server_version_info or ()
        if engine.dialect.name == "postgresql" and server < (OLDEST_POSTGRESQL,):
            number = ".".join(map(str, server))
            raise UnavailableError(
                f"{describe(engine)} is on PostgreSQL {number}; {OLDEST_POSTGRESQL} or newer is needed",
                code="database_server_too_old",
            )
        if found is None:
            raise UnavailableError(f"{describe(engine)} is empty; run `{UPGRADE_COMMAND}`", code="database_no_table")
        if found < SCHEMA_REVISION:
            raise UnavailableError(
                f"{describe(engine)} is at schema {found}, not {SCHEMA_REVISION}; run `{UPGRADE_COMMAND}`",
                code="database_too_old",
            )
        if found > SCHEMA_REVISION:
            raise UnavailableError(
                f"{describe(engine)} is at schema {found}, written by a newer version than this one, which knows "
                f"{SCHEMA_REVISION}; install the newer version",
                code="database_too_new",
            )
        if writable:
            _check_writable(engine)


def _revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return revision


def _check_writable(engine: Engine) -> None:
    """Write what is there once more, and roll back: neither server says that it is read-only before."""
    with engine.execution_options(ballast_writes=True).connect() as connection:
        connection.execute(update(AuditHeadRow).values(number=AuditHeadRow.number))
        connection.rollback()
