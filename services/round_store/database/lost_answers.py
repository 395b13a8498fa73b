"""Whether PostgreSQL committed a transaction whose connection was cut before the answer to its commit came."""

from __future__ import annotations

import time
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

ASKING_SECONDS = 5.0
"""How long it is asked what became of a transaction."""
_MARK = text("SELECT pg_current_xact_id()::text, pg_postmaster_start_time()")
_BECAME = text("SELECT pg_xact_status(CAST(:number AS xid8)), pg_postmaster_start_time()")


class Mark(NamedTuple):
    """Number of a transaction, and since when the server runs: on a replica that took over it may be another's."""

    number: str
    server: datetime


def mark_of(session: Session) -> Mark | None:
    """What a transaction is found by afterwards; None with SQLite, which loses no answer."""
    if session.get_bind().dialect.name != "postgresql":
        return None
    number, server = session.execute(_MARK).one()
    return Mark(number, server)


def was_committed(engine: Engine, mark: Mark) -> bool | None:
    """Whether a transaction stands; None where the server does not say so in time, or was started anew."""
    deadline = time.monotonic() + ASKING_SECONDS
    while True:
        became, server = _became(engine, mark)
        if server not in (None, mark.server):
            return None
        if became in ("committed", "aborted"):
            return became == "committed"
        if time.monotonic() > deadline:
            return None
        time.sleep(0.1)


def _became(engine: Engine, mark: Mark) -> tuple[str | None, datetime | None]:
    try:
        with engine.connect() as connection:
            became, server = connection.execute(_BECAME, {"number": mark.number}).one()
            return became, server
    except SQLAlchemyError:  # away, or it has counted no further than that
        return None, None
