"""The audit trail shows every later change."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from migrations.run import upgrade
from services.contracts.access.identity import Role
from services.contracts.errors import ConflictError
from services.contracts.history.audit import GENESIS
from services.round_store.store import RoundStore

UNLOCK = {
    "sqlite": ("DROP TRIGGER audit_events_no_update", "DROP TRIGGER audit_events_no_delete"),
    "postgresql": ("DROP TRIGGER audit_events_no_change ON audit_events",),
}

MORE = "at, actor, role, action, target, reason, before, after, hash"


@pytest.fixture
def trail(store: RoundStore) -> RoundStore:
    """A store with three events."""
    for number, name in enumerate(("north", "south", "east")):
        store.audit.append(
            actor="ada",
            role=Role.ADMINISTRATOR,
            action="site.enrol",
            target=f"site/{name}",
            reason="a new contract",
            after={"weight": 1 / 3, "limit": float("inf"), "number": number, "types": ("pump",), "note": "ä\x00"},
        )
    return store


def meddle(store: RoundStore, statement: str) -> None:
    """Change the table as someone would who owns the database and takes the triggers away."""
    with store.engine.execution_options(ballast_writes=True).begin() as connection:
        for unlock in UNLOCK[store.engine.dialect.name]:
            connection.execute(text(unlock))
        connection.execute(text(statement))


def test_events_come_back_and_the_chain_holds(trail: RoundStore) -> None:
    events = trail.audit.list_events()
    assert [event.target for event in events] == ["site/east", "site/south", "site/north"]
    assert events[-1].previous_hash == GENESIS
    assert events[0].previous_hash == events[1].hash
    after = events[0].after
    assert after == {"weight": 1 / 3, "limit": "Infinity", "number": 2, "types": ["pump"], "note": "ä\ufffd"}
    report = trail.audit.verify_chain()
    assert (report.ok, report.events, report.head, report.problem) == (True, 3, events[0].hash, "")


def test_events_are_filtered(trail: RoundStore) -> None:
    trail.audit.append(actor="flow", role=None, action="model.promote", target="model/pump", reason="gates hold")
    assert [event.number for event in trail.audit.list_events(actor="flow")] == [4]
    assert [event.number for event in trail.audit.list_events(action="site.enrol", limit=1, offset=1)] == [2]
    assert [event.number for event in trail.audit.list_events(target="site/south")] == [2]
    assert trail.audit.list_events(actor="flow")[0].role is None


def test_pages_of_the_trail_have_each_entry_once(trail: RoundStore) -> None:
    """By the number of the last one, and by a moment: what is before it, and what is from it on."""
    first = trail.audit.list_events(limit=2)
    rest = trail.audit.list_events(before=first[-1].number)
    assert [event.number for event in (*first, *rest)] == [3, 2, 1]
    middle = first[-1].at
    since, until = trail.audit.list_events(since=middle), trail.audit.list_events(until=middle)
    assert [event.number for event in (*since, *until)] == [3, 2, 1] and since[-1].at == middle


@pytest.mark.parametrize("statement", ["UPDATE audit_events SET actor = 'eve'", "DELETE FROM audit_events"])
def test_the_server_refuses_to_change_events(trail: RoundStore, statement: str) -> None:
    with pytest.raises(DBAPIError, match="never changed or deleted"):
        with trail.engine.execution_options(ballast_writes=True).begin() as connection:
            connection.execute(text(statement))
    assert trail.audit.verify_chain().events == 3


def test_the_server_refuses_to_empty_the_trail(trail: RoundStore) -> None:
    statement = {"sqlite": "DELETE FROM audit_events", "postgresql": "TRUNCATE audit_events"}
    with pytest.raises(DBAPIError, match="never changed or deleted"):
        with trail.engine.execution_options(ballast_writes=True).begin() as connection:
            connection.execute(text(statement[trail.engine.dialect.name]))
    assert trail.audit.verify_chain().events == 3


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE audit_events SET actor = 'eve' WHERE number = 2", "event 2 was changed after it was written"),
        ("UPDATE audit_events SET role = 'king' WHERE number = 2", "event 2 was changed: it is no valid event"),
        ("UPDATE audit_events SET after = '{}' WHERE number = 3", "event 3 was changed after it was written"),
        ("UPDATE audit_events SET at = '2020-01-01 00:00:00.000000' WHERE number = 1", "event 1 was changed"),
        ("DELETE FROM audit_events WHERE number = 2", "event 2 is missing"),
        ("DELETE FROM audit_events WHERE number = 1", "event 1 is missing"),
        (f"INSERT INTO audit_events (number, previous_hash, {MORE}) SELECT 0, 'x', {MORE} FROM audit_events LIMIT 1",
         "event 1 is missing"),
        ("DELETE FROM audit_events WHERE number = 3", "the trail ends with event 2, but 3 were written"),
        ("DELETE FROM audit_events", "the trail ends with event 0, but 3 were written"),
        ("UPDATE audit_events SET previous_hash = reason WHERE number = 2", "event 2 does not follow the one before"),
    ],
)
def test_every_change_shows(trail: RoundStore, statement: str, problem: str) -> None:
    meddle(trail, statement)
    report = trail.audit.verify_chain()
    assert not report.ok
    assert report.problem.startswith(problem)


def test_swapped_events_show(trail: RoundStore) -> None:
    meddle(trail, "UPDATE audit_events SET number = CASE number WHEN 2 THEN -3 WHEN 3 THEN -2 ELSE number END")
    with trail.engine.execution_options(ballast_writes=True).begin() as connection:
        connection.execute(text("UPDATE audit_events SET number = -number WHERE number < 0"))
    assert trail.audit.verify_chain().problem == "event 2 does not follow the one before it"


@pytest.mark.parametrize(("column", "value"), [("before", "{"), ("after", "[" * 5000), ("at", "yesterday")])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_event_that_cannot_be_read_shows(tmp_path: Path, column: str, value: str, number: int) -> None:
    """In a file anybody can write what is no JSON, and no time."""
    url = f"sqlite:///{tmp_path}/store.db"
    upgrade(url)
    store = RoundStore.open(url)
    for name in ("north", "south", "east"):
        store.audit.append(actor="ada", role=None, action="site.enrol", target=f"site/{name}", before={"a": 1})
    head = [GENESIS, *(each.hash for each in store.audit.list_events()[::-1])][number - 1]
    meddle(store, f"UPDATE audit_events SET {column} = '{value}' WHERE number = {number}")
    report = store.audit.verify_chain()
    with pytest.raises(ConflictError, match="one of these events was changed.*`ballast audit verify` says which"):
        store.audit.list_events()
    assert [each.number for each in store.audit.list_events(before=number)] == [*range(number - 1, 0, -1)]
    store.close()
    assert report.problem == f"event {number} was changed: it cannot be read any more"
    assert (report.ok, report.events, report.head) == (False, number - 1, head)
