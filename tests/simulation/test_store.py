"""What the simulated store remembers of its reads is what the database says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event

from services.round_store.store import RoundStore
from tests.simulation.disk import SimulatedDatabase
from tests.simulation.plants import RIG
from tests.simulation.processes import Process
from tests.simulation.store import Remembered, founded, tables_named
from tests.simulation.world import World


@pytest.fixture
def works() -> Iterator[tuple[RoundStore, list[str]]]:
    """A store that remembers, and the statements that it sends."""
    engine, _ = founded()
    remembered, world, sent = Remembered(engine), World(1), list[str]()
    database = SimulatedDatabase(engine, world, Process("one"), None, lambda process: remembered.forget())

    def noted(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", noted)
    yield remembered.store(database, Process("one")), sent
    event.remove(engine, "before_cursor_execute", noted)
    remembered.close()
    world.loop.close()
    engine.dispose()


def reads(sent: list[str]) -> int:
    return sum(tables_named(each)[0] for each in sent)


def test_a_read_is_made_again_after_a_commit_to_its_tables_alone(works: tuple[RoundStore, list[str]]) -> None:
    store, sent = works
    store.asset_types.add(RIG)
    key = "U" + "A" * 55
    assert store.sites.list_sites() == []
    store.sites.enrol("plant-1", key, [RIG.name])
    assert [each.site_id for each in store.sites.list_sites()] == ["plant-1"], "its table has another row"
    sent.clear()
    with store.atomic() as unit:
        unit.audit.append(actor="user:op", role=None, action="plan.create", target="plan:nightly")
    asked = reads(sent)
    assert [each.site_id for each in store.sites.list_sites()] == ["plant-1"] and reads(sent) == asked
    store.sites.suspend("plant-1")
    assert [each.status for each in store.sites.list_sites()] == ["suspended"]


def test_what_a_read_asks_of_another_counts_as_its_own(works: tuple[RoundStore, list[str]]) -> None:
    store, _ = works
    remembered = store.sites.list_sites.__closure__
    assert remembered is not None
    outer = next(each.cell_contents for each in remembered if isinstance(each.cell_contents, Remembered))
    assert store.sites.list_sites() == []
    outer._read("both", store.sites.list_sites)
    assert outer.values["both"][1] == outer.values[("sites.list_sites", (), ())][1] >= {"sites"}


def test_an_unfinished_run_is_held_to_the_clock_each_time(works: tuple[RoundStore, list[str]]) -> None:
    store, sent = works
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert store.runs.stale_runs(now) == []
    sent.clear()
    store.runs.stale_runs(now)
    assert reads(sent) == 1, "that no run is unfinished is asked once"
    store.runs.stale_runs(now)
    assert reads(sent) == 1


def test_tables_that_a_statement_names() -> None:
    assert tables_named("SELECT runs.rounds FROM runs WHERE x") == (True, {"runs", "rounds"})
    assert tables_named("UPDATE runs SET lease_until=?") == (False, {"runs"})
    assert tables_named("PRAGMA synchronous=FULL") == (False, frozenset())
