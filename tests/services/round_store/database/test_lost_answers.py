"""Commits whose answer is lost: what became of them is asked, and nobody is told what is not so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from services.contracts.errors import UnavailableError
from services.round_store.database import lost_answers
from services.round_store.store import RoundStore
from tests.lost_answers import LossyServer, answers_lost

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
    before = mark._replace(server=mark.server.replace(year=2000))
    assert lost_answers.was_committed(store.engine, before) is None
