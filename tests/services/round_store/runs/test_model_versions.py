"""Model versions and their aliases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError
from services.contracts.history.run import Run
from services.round_store.database.queries import table_of
from services.round_store.store import RoundStore
from services.round_store.tables.versions import ModelVersionRow
from tests.aliases import alias_history


def test_versions_come_back_with_their_metrics(store: RoundStore, running: Run) -> None:
    metrics = {"gap": 0.1 + 0.2, "f1": None, "upper": float("inf"), "sites": {"a": {"f1": 1 / 3}}}
    added = store.model_versions.add("pump", "1", running.run_id, metrics)
    assert (added.status, added.run_id) == ("registered", running.run_id)
    assert added.metrics == metrics | {"upper": "Infinity"}
    assert store.model_versions.get("pump", "1") == added
    judged = store.model_versions.set_status("pump", "1", "gates_failed", "F-1 .70 is under .75")
    assert (judged.status, judged.reason) == ("gates_failed", "F-1 .70 is under .75")
    second = store.model_versions.add("pump", "2", running.run_id, {})
    assert store.model_versions.list_versions("pump", limit=9) == [second, judged]
    assert store.model_versions.list_versions("pump", limit=1) == [second]
    assert store.model_versions.list_versions("fan", limit=9) == []
    # A process that was killed after this comes again: it finds what it had recorded.
    assert store.model_versions.add("pump", "2", running.run_id, {"gap": 1.0}) == second
    store.runs.finish_run(running.run_id, "completed", "done")
    other = store.runs.create_run(running.plan)
    with pytest.raises(ConflictError, match="version 2 of model pump is recorded already"):
        store.model_versions.add("pump", "2", other.run_id, {})
    with pytest.raises(NotFoundError, match="no run"):
        store.model_versions.add("pump", "3", "0" * 32, {})
    with pytest.raises(NotFoundError, match="no version 3 of model pump"):
        store.model_versions.get("pump", "3")


def test_all_numbers_are_told_the_newest_first(store: RoundStore, running: Run) -> None:
    """A plan that retrains every night has more versions than a page; of one moment the higher number is newer."""
    moment, last = datetime(2031, 1, 1, tzinfo=UTC), 1500
    rows = [
        {"name": "pump", "version": str(number), "run_id": running.run_id, "status": "registered", "reason": "",
         "metrics": {}, "created_at": moment if number < last else moment + timedelta(days=1)}
        for number in (*range(2, last), 1, last)
    ]
    with store.engine.begin() as connection:
        connection.execute(insert(table_of(ModelVersionRow)), rows)
    store.model_versions.mark_forgotten("pump", ("7",), "a plant left")
    wanted = tuple(str(number) for number in range(last, 0, -1) if number != 7)
    assert store.model_versions.numbers("pump") == wanted
    assert store.model_versions.numbers("pump", {running.run_id}) == wanted
    assert store.model_versions.numbers("pump", {"0" * 32}) == () == store.model_versions.numbers("fan")


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_a_version_of_a_run_that_did_not_end_well_says_so(store: RoundStore, running: Run, end: str) -> None:
    store.model_versions.add("pump", "1", running.run_id, {})
    store.model_versions.set_status("pump", "1", "gates_passed")
    store.model_versions.add("pump", "2", running.run_id, {})
    store.runs.finish_run(running.run_id, end, "the registry is away")
    judged, left = store.model_versions.get("pump", "1"), store.model_versions.get("pump", "2")
    assert (judged.status, judged.reason) == ("gates_passed", "")
    said = f"its run {end} after it was registered: the registry is away"
    assert (left.status, left.reason) == ("gates_failed", said)
    (told,) = store.events.after(0, ["gate.refused"])
    assert (told.version, told.run_id, told.reason) == ("2", running.run_id, said)


def test_a_forgotten_version_is_known_and_stands_in_no_list(store: RoundStore, running: Run) -> None:
    for version in ("1", "2", "3"):
        store.model_versions.add("pump", version, running.run_id, {})
    store.model_versions.add("fan", "3", running.run_id, {})
    store.model_versions.mark_forgotten("pump", ("3", "1", "9"), "a plant left")
    assert [each.version for each in store.model_versions.list_versions("pump", limit=9)] == ["2"]
    known = store.model_versions.list_versions("pump", limit=9, with_forgotten=True)
    assert {each.version: each.status for each in known} == {
        "1": "forgotten", "2": "registered", "3": "forgotten"
    }
    assert store.model_versions.get("pump", "1").reason == "a plant left"
    assert store.model_versions.forgotten({"pump", "fan"}) == {("pump", "1"), ("pump", "3")}
    assert store.model_versions.forgotten({"fan"}) == store.model_versions.forgotten(set()) == frozenset()
    assert {name: each.version for name, each in store.overview.newest_versions().items()} == {"pump": "2", "fan": "3"}


def test_aliases_have_a_history(store: RoundStore, running: Run) -> None:
    for version in ("1", "2"):
        store.model_versions.add("pump", version, running.run_id, {})
    first = store.model_versions.record_alias("pump", "champion", "1", "ada", "the first")
    store.model_versions.record_alias("pump", "challenger", "2", "flow", "registered")
    second = store.model_versions.record_alias("pump", "champion", "2", "ada", "better")
    gone = store.model_versions.record_alias("pump", "champion", None, "ada", "stop")
    assert (first.version, first.previous_version) == ("1", None)
    assert (second.version, second.previous_version) == ("2", "1")
    assert (gone.version, gone.previous_version) == (None, "2")
    changes = alias_history(store, "pump")
    assert [change for change in changes if change.alias == "champion"] == [gone, second, first]
    assert len(changes) == 4
    told = [(each.kind, each.version) for each in store.events.after(0) if each.kind == "model.promoted"]
    assert told == [("model.promoted", "1"), ("model.promoted", "2"), ("model.promoted", None)], "no other alias is"
    with pytest.raises(InvalidInputError, match="needs a reason"):
        store.model_versions.record_alias("pump", "champion", "1", "ada", " ")
    with pytest.raises(NotFoundError, match="no version 9"):
        store.model_versions.record_alias("pump", "champion", "9", "ada", "why not")


def test_an_alias_is_followed_where_it_moved_to_a_version_of_the_store(store: RoundStore, running: Run) -> None:
    for version in ("1", "2"):
        store.model_versions.add("pump", version, running.run_id, {})
    store.model_versions.add("fan", "9", running.run_id, {})
    told = [
        store.model_versions.follow_alias("pump", "previous-champion", version, "ada", "as it is now")
        for version in ("1", "1", "9", "2", None, None)
    ]
    moves = [None if each is None else (each.previous_version, each.version) for each in told]
    assert moves == [(None, "1"), None, None, ("1", "2"), ("2", None), None], "9 is another model's"
    assert alias_history(store, "pump") == [told[4], told[3], told[0]]
    assert store.model_versions.alias("pump", "previous-champion") == told[4]


def test_that_a_version_was_champion_is_known_when_it_is_no_more(store: RoundStore, running: Run) -> None:
    for version in ("1", "2", "3"):
        store.model_versions.add("pump", version, running.run_id, {})
    store.model_versions.record_alias("pump", "champion", "1", "ada", "the first")
    store.model_versions.record_alias("pump", "challenger", "2", "flow", "registered")
    store.model_versions.record_alias("pump", "champion", "3", "ada", "better")
    assert [store.model_versions.had_alias("pump", "champion", each) for each in "123"] == [True, False, True]
    assert not store.model_versions.had_alias("fan", "champion", "1")
