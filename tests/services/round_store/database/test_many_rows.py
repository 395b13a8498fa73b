"""Many rows at once: what comes back is what was given, on both servers, and failures are those of an insert."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, event, select
from sqlalchemy.exc import IntegrityError

from migrations.run import upgrade
from services.contracts.errors import UnavailableError
from services.round_store.database.many_rows import insert_rows
from services.round_store.database.queries import table_of
from services.round_store.database.session import Database, make_engine
from services.round_store.tables.plans import AssetTypeRow
from services.round_store.tables.runs import EvidenceRow, RoundRow, RunRow

ROUNDS, RUNS, EVIDENCE = table_of(RoundRow), table_of(RunRow), table_of(EvidenceRow)
MOMENT = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ODD, EVERY = "a\tb\\N\n'", bytes(range(256)) * 90


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database with its tables, and a run."""
    upgrade(database_url)
    made = Database(make_engine(database_url))
    begun = dict(plan_name="p", plan={"a": 1}, status="running", reason="", created_at=MOMENT, updated_at=MOMENT,
                 rounds=0, sites=[], absentees=[], excluded=[], cancel_requested=False)
    with made.write() as session:
        insert_rows(session, RUNS, [{"run_id": "r", **begun}])
    yield made
    made.close()


def rounds(*numbers: int) -> list[dict[str, Any]]:
    """Rounds of the run, with floats that decimals do not hit."""
    told = {"started_at": MOMENT, "committed_at": MOMENT, "upper": float("inf"), "lower": 0.1 + 0.2, "gap": 1e-320}
    return [{"run_id": "r", "round": number, "seconds": 1e-17, "overhead_seconds": 1 / 3, "fresh_weight": 1.0, **told}
            for number in numbers]


def stored(database: Database, table: Any = ROUNDS) -> Sequence[dict[str, Any]]:
    with database.read() as session:
        return [dict(row._mapping) for row in session.execute(select(table).order_by(*table.primary_key))]


@pytest.mark.parametrize("numbers", [(), (1,), (1, 2, 7)])
def test_what_comes_back_is_what_was_given(database: Database, numbers: tuple[int, ...]) -> None:
    with database.write() as session:
        insert_rows(session, ROUNDS, rounds(*numbers))
    assert [repr(sorted(row.items())) for row in stored(database)] == [
        repr(sorted(row.items())) for row in rounds(*numbers)
    ]


def test_documents_bytes_and_what_is_none_come_back_too(database: Database) -> None:
    with database.write() as session:
        insert_rows(session, RUNS, [
            stored(database, RUNS)[0] | {"run_id": name, "status": "failed", "reason": ODD, "plan": {"x": -0.0}} | start
            for name, start in (("s", {"start": None}), ("t", {"start": {"from": "r"}}))
        ])
        insert_rows(session, EVIDENCE, [
            {"run_id": "r", "site_id": name, "document": document} for name, document in (("a", b""), ("b", EVERY))
        ])
    assert [(row["run_id"], row["reason"], repr(row["plan"]), row["start"], row["lease_until"])
            for row in stored(database, RUNS)[1:]] == [
        ("s", ODD, "{'x': -0.0}", None, None), ("t", ODD, "{'x': -0.0}", {"from": "r"}, None)]
    assert [row["document"] for row in stored(database, EVIDENCE)] == [b"", EVERY]


def test_a_key_that_is_taken_writes_none_of_them(database: Database) -> None:
    with pytest.raises(IntegrityError), database.write() as session:
        insert_rows(session, ROUNDS, rounds(1, 2, 1))
    assert stored(database) == []


def test_a_row_without_its_run_is_refused(database: Database) -> None:
    with pytest.raises(IntegrityError), database.write() as session:
        insert_rows(session, ROUNDS, [row | {"run_id": "none"} for row in rounds(1, 2)])


def told_by(engine: Engine, done: Callable[[], None]) -> list[str]:
    """What the server says of each statement."""
    found: list[str] = []

    def note(_connection: Any, cursor: Any, *_: Any) -> None:
        found.append(cursor.statusmessage)

    event.listen(engine, "after_cursor_execute", note)
    done()
    event.remove(engine, "after_cursor_execute", note)
    return found


@pytest.mark.parametrize(("numbers", "said"), [((1,), "INSERT 0 1"), ((1, 2, 3), "COPY 3")])
def test_postgresql_takes_many_as_a_copy(
    new_postgresql: Callable[[], str], numbers: tuple[int, ...], said: str
) -> None:
    database = Database(make_engine(new_postgresql()))
    row = {"version": 1, "document": {}, "fingerprint": "0", "created_at": MOMENT}
    rows = [row | {"name": f"pump{number}"} for number in numbers]

    def insert() -> None:
        with database.write() as session:
            insert_rows(session, table_of(AssetTypeRow), rows)

    assert told_by(database.engine, insert) == [said]
    database.close()


def test_a_server_that_is_cut_off_is_told_as_such(new_postgresql: Callable[[], str]) -> None:
    url = new_postgresql()
    database = Database(make_engine(url))
    other = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")

    def cut(_connection: Any, cursor: psycopg.Cursor[Any], *_: Any) -> None:
        with other.connect() as away:
            away.exec_driver_sql(f"SELECT pg_terminate_backend({cursor.connection.info.backend_pid}, 5000)")

    event.listen(database.engine, "before_cursor_execute", cut)
    with pytest.raises(UnavailableError, match="cannot be reached"), database.write() as session:
        insert_rows(session, ROUNDS, rounds(1, 2))
    event.remove(database.engine, "before_cursor_execute", cut)
    assert stored(database) == []
    database.close()
    other.dispose()
