"""Rows of one server are the same rows on the other."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text

from services.backup import tables
from services.backup.home_files import below, files_below, files_of
from services.contracts.errors import ConflictError, UnavailableError
from services.round_store.database.session import make_engine
from services.round_store.operation.events import note
from services.round_store.store import RoundStore
from services.round_store.tables.runs import RunRow, RunStatePartRow
from tests.vanishing import after_listing

AT = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))


def planted(store: RoundStore) -> None:
    """Values that a careless way would change: signs of zero, infinities, text of many kinds, frames, JSON null."""
    with store.database.write() as session:
        session.execute(insert(RunRow).values(
            run_id="a" * 32, plan_name="weekly", plan={"b": [-0.0, 5e-324, 1e308, None], "a": {"ü\u2028": "\n"}},
            status="running", reason="“x”\u2028\n{\"bytes\": 1}", created_at=AT, updated_at=AT, rounds=2**40,
            sites=[], absentees=[None], excluded=[], upper=float("inf"), lower=0.1 + 0.2, gap=5e-324,
            fresh_weight=float("-inf"), cancel_requested=True, flow_run_id=None, mlflow_run_id="", model_version=None,
            lease_owner=None, lease_until=None,
        ))
    for number in range(3):
        store.audit.append(actor="a", role=None, action="b", target=str(number), after={"x": -0.0})
    with store.database.write() as session:
        session.execute(insert(RunStatePartRow).values(run_id="a" * 32, round=1, frame=bytes(range(256)) * 5))


def copied(source: str, target: str) -> None:
    one, other = make_engine(source), make_engine(target)
    with one.connect() as here, other.execution_options(ballast_writes=True).begin() as there:
        found = {table.name: table for table in tables.reflected(there)}
        tables.empty(there, found.values())
        for table in tables.reflected(here):
            for part in tables.dump(here, table):
                tables.fill(there, found[table.name], part)
        tables.reset_counters(there, found.values())
    one.dispose()
    other.dispose()


@pytest.mark.parametrize(("source", "target"), [
    ("sqlite", "postgresql"), ("postgresql", "sqlite"), ("sqlite", "sqlite"), ("postgresql", "postgresql"),
])
def test_rows_are_the_same_on_the_other_server(
    source: str, target: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MEMBER_BYTES", 300)
    here, there = (request.getfixturevalue(f"new_{kind}")() for kind in (source, target))
    store, copy = RoundStore.open(here), RoundStore.open(there)
    try:
        planted(store)
        copied(here, there)
        assert copy.audit.verify_chain() == store.audit.verify_chain()
        rows = []
        for each in (store, copy):
            with each.database.read() as session:
                row = session.scalars(select(RunRow)).one()
                rows.append(repr({name: getattr(row, name) for name in RunRow.__table__.columns.keys()}))
            with each.engine.connect() as connection:  # a document that is not there is none, and not JSON's null
                assert connection.scalar(text("SELECT count(*) FROM runs WHERE leaving IS NULL")) == 1
        assert rows[0] == rows[1] and "-0.0" in rows[0] and repr(AT.astimezone(UTC)) in rows[0]
        with copy.database.write() as session:
            note(session, "run.begun", plan="weekly", run_id="a" * 32)
        copy.audit.append(actor="a", role=None, action="b", target="3")
        assert copy.audit.verify_chain().events == 4
    finally:
        store.close()
        copy.close()


def test_counters_go_on_after_the_last_number(new_sqlite: Callable[[], str], new_postgresql: Callable[[], str]) -> None:
    here, there = new_sqlite(), new_postgresql()
    store, copy = RoundStore.open(here), RoundStore.open(there)
    try:
        for each in (store, copy):
            if each is copy:
                copied(here, there)
            for _ in range(3):
                with each.database.write() as session:
                    note(session, "run.begun", plan="weekly", run_id="a" * 32)
        assert [event.number for event in copy.events.after(0)] == [1, 2, 3, 4, 5, 6]
    finally:
        store.close()
        copy.close()


def test_a_table_is_emptied_before_those_that_it_refers_to(new_sqlite: Callable[[], str]) -> None:
    store = RoundStore.open(new_sqlite())
    try:
        planted(store)
        with store.engine.execution_options(ballast_writes=True).begin() as connection:
            wanted = [table for table in tables.reflected(connection) if table.name in ("runs", "run_state_parts")]
            tables.empty(connection, wanted)
            assert [connection.scalar(select(func.count()).select_from(table)) for table in wanted] == [0, 0]
    finally:
        store.close()


def test_rows_that_are_not_kept_are_left_out_and_every_part_has_the_names(
    new_sqlite: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RoundStore.open(new_sqlite())
    try:
        for number in range(1, 11):
            with store.database.write() as session:
                note(session, "run.begun", plan="weekly", run_id=f"{number:032x}")
        with store.engine.connect() as connection:
            (table,) = [each for each in tables.reflected(connection) if each.name == "events"]
            (none,) = tables.dump(connection, table, lambda row: False)
            assert list(tables.rows(none)) == [] and none.count(b"\n") == 1
            for size in (1, 300, 450, 600):
                monkeypatch.setattr(tables, "MEMBER_BYTES", size)
                parts = list(tables.dump(connection, table, lambda row: row["number"] % 3 != 0))
                assert len(parts) > 1 and {part.splitlines()[0] for part in parts} == {none.strip()}
                found = [row for part in parts for row in tables.rows(part)]
                assert [row["number"] for row in found] == [1, 2, 4, 5, 7, 8, 10]
                assert all(row["at"].utcoffset() == timedelta(0) for row in found)
    finally:
        store.close()


def test_keys_are_taken_and_what_is_made_anew_is_not(tmp_path: Path) -> None:
    for name in ("ballast.toml", "nats/coordinator.nk", "nats/nats.pid", "nats/nats.log", "secrets/prefect",
                 "webhooks.key", "ballast.db", "ballast.db-wal", "mlflow-users.db", "flows.lock", "logs/api.log",
                 "prefect/x.toml", "mlflow-artifacts/1/model.json", ".ballast-backup-1a/x", "new/thing.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / "old.ballast").write_bytes(b"BALLASTB\x01...")
    assert [name for name, _ in files_of(tmp_path)] == [
        "ballast.toml", "nats/coordinator.nk", "new/thing.json", "secrets/prefect", "webhooks.key",
    ]


def test_what_goes_while_a_folder_is_walked_is_no_file_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a version's folder does, that is forgotten meanwhile, or a file that is written anew."""
    for name in ("a.key", "b/c.key", "d/e.key"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")

    def go() -> None:
        shutil.rmtree(tmp_path / "b")
        (tmp_path / "a.key").unlink()

    after_listing(monkeypatch, tmp_path, go)
    assert files_below(tmp_path) == [tmp_path / "d/e.key"]
    monkeypatch.undo()
    (tmp_path / "a.key").write_text("x")
    monkeypatch.setattr("services.backup.home_files.is_backup", lambda _: (tmp_path / "d/e.key").unlink())
    assert [name for name, _ in files_of(tmp_path)] == ["a.key"]


def test_a_folder_that_may_not_be_read_is_told_and_one_that_is_left_out_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("nats", "logs"):
        (tmp_path / name).mkdir()
    real = os.scandir

    def look(at: str) -> Any:
        if Path(at) == tmp_path:
            return real(at)
        raise PermissionError(errno.EACCES, "not yours", str(at))

    monkeypatch.setattr(os, "scandir", look)
    with pytest.raises(UnavailableError, match=f"^there is no backup, for {tmp_path}/nats cannot be read: not yours$"):
        list(files_of(tmp_path))
    (tmp_path / "nats").rmdir()
    assert list(files_of(tmp_path)) == []


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", ""])
def test_no_member_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match="outside"):
        below(tmp_path, name)
