"""Whether PostgreSQL committed a transaction whose connection was cut before the answer to its commit came.

Why the number alone is not enough, and what is told where nobody knows: decision 109.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

ASKING_SECONDS = 5.0
"""How long it is asked what became of a transaction."""
_LIFE = "pg_postmaster_start_time()::text || (SELECT stats_reset::text FROM pg_stat_bgwriter)"
"""Another one after every crash: when the server was started, and since when it counts, which a crash of one of its
processes begins anew."""
_MARK = text(f"SELECT pg_current_xact_id()::text, {_LIFE}")
_BECAME = text(f"SELECT pg_xact_status(CAST(:number AS xid8)), {_LIFE}")


class Mark(NamedTuple):
    """Number of a transaction, and in which life of the server.

    After a crash the number of one that was lost is given once more, and so it is by a replica that took over.
    """

    number: str
    life: str | None


def mark_of(session: Session) -> Mark | None:
    """What a transaction is found by afterwards; None with SQLite, which loses no answer."""
    if session.get_bind().dialect.name != "postgresql":
        return None
    number, life = session.execute(_MARK).one()
    return Mark(number, life)


def was_committed(engine: Engine, mark: Mark) -> bool | None:
    """Whether a transaction stands; None where the server does not say so in time, or has another life by now."""
    deadline = time.monotonic() + ASKING_SECONDS
    while True:
        became, life = _became(engine, mark)
        if life not in (None, mark.life):
            return None
        if became in ("committed", "aborted"):
            return became == "committed"
        if time.monotonic() > deadline:
            return None
        time.sleep(0.1)


def _became(engine: Engine, mark: Mark) -> tuple[str | None, str | None]:
    try:
        with engine.connect() as connection:
            became, life = connection.execute(_BECAME, {"number": mark.number}).one()
            return became, life
    except SQLAlchemyError:  # away, or it has not counted so far since it crashed
        return None, None
