"""A real PostgreSQL server that stands still: who asks it is told within seconds, and goes on once it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import Engine, text

from services.contracts.errors import UnavailableError
from services.round_store.database import standing_servers
from services.round_store.database.session import Database, make_engine
from tests.standstill import postgresql_stands
from tests.waiting import PATIENCE


@pytest.fixture
def engine(new_postgresql: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Of a database; waits are short."""
    monkeypatch.setattr(standing_servers, "ANSWER_SECONDS", 0.2)
    monkeypatch.setitem(standing_servers.CONNECTING, "connect_timeout", 2)  # libpq's least
    made = make_engine(new_postgresql())
    yield made
    made.dispose()


def asked(engine: Engine) -> int:
    with Database(engine).read() as session:
        return session.execute(text("SELECT 1")).scalar_one()


def refused(engine: Engine) -> str:
    thread = ThreadPoolExecutor(1)
    with pytest.raises(UnavailableError, match="cannot be reached or opened") as told:
        thread.submit(asked, engine).result(PATIENCE)
    thread.shutdown(wait=False)  # where it waits for ever the test has failed, and the server goes on
    return told.value.code


def test_who_asks_a_server_that_stands_still_is_told_so(engine: Engine) -> None:
    """By a connection that it has, which is replaced, and by a new one."""
    assert asked(engine) == 1
    with postgresql_stands(engine.url):
        assert [refused(engine), refused(engine)] == ["database_cannot_open"] * 2
    assert asked(engine) == 1


def test_who_finds_no_connection_left_is_told_the_same(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.pool, "_timeout", 0.1)
    most = 15  # connections of the pool
    with ThreadPoolExecutor(most + 1) as threads, postgresql_stands(engine.url):
        told = [each.result() for each in [threads.submit(refused, engine) for _ in range(most + 1)]]
    assert told == ["database_cannot_open"] * (most + 1)


def test_a_connection_is_kept_where_the_server_answers(engine: Engine) -> None:
    with engine.connect() as connection:
        first = connection.scalar(text("SELECT pg_backend_pid()"))
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT pg_backend_pid()")) == first


def test_a_connection_that_was_told_the_end_is_no_answer(new_postgresql: Callable[[], str]) -> None:
    url = new_postgresql()
    with psycopg.connect(url) as connection, psycopg.connect(url, autocommit=True) as other:
        assert standing_servers.answers(connection)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        deadline = time.monotonic() + 10
        while other.execute(
            "SELECT 1 FROM pg_stat_activity WHERE pid = %s", (connection.info.backend_pid,)
        ).fetchone() and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            assert not standing_servers.answers(connection)
        except psycopg.OperationalError:
            assert connection.closed
