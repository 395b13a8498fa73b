"""A PostgreSQL server that stands still, or whose host is gone without a word: nobody waits for it for ever."""

from __future__ import annotations

import select
import time
from typing import Any, Final

from sqlalchemy import Engine

CONNECT_SECONDS: Final = 5
"""For a new connection."""
ANSWER_SECONDS = 5.0
"""That a connection of the pool has to answer in before it is used; one that does not is replaced by a new one."""
CONNECTING: Final[dict[str, Any]] = {
    "connect_timeout": CONNECT_SECONDS, "application_name": "ballast",
    # A statement on its way to a host that is gone: by itself the system would wait for hours.
    "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000,
}
"""Arguments of a connection."""


def ask_before_use(engine: Engine) -> None:
    """Have the connections of an engine with ``pool_pre_ping`` asked by :func:`answers`, with an end to the waiting.

    SQLAlchemy's own question waits for as long as the server stands still.
    """
    engine.dialect.do_ping = answers  # type: ignore[method-assign]


def answers(dbapi_connection: Any) -> bool:
    """Whether the server answers on a connection of psycopg's within :data:`ANSWER_SECONDS`, to an empty statement."""
    link, deadline = dbapi_connection.pgconn, time.monotonic() + ANSWER_SECONDS
    link.send_query(b"")
    poll = select.poll()
    poll.register(link.socket, select.POLLIN)
    while link.flush() or link.is_busy():
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return False
        link.consume_input()
    said = [each.error_message for each in iter(link.get_result, None)]
    return not any(said)  # a server that ends says so before it closes the connection
