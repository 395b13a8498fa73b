"""Addresses of databases, and databases that cannot be used."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, QueuePool, insert, text
from sqlalchemy.exc import OperationalError, StatementError

from migrations.run import downgrade, head, upgrade
from services.contracts.errors import ConflictError, InvalidInputError, UnavailableError
from services.contracts.plans.plan import Plan
from services.round_store import store as store_module
from services.round_store.database import schema, session
from services.round_store.database.failures import kind_of
from services.round_store.database.schema import SCHEMA_REVISION
from services.round_store.database.session import make_engine, utc_now
from services.round_store.store import RoundStore
from services.round_store.tables.plans import AssetTypeRow
from tests.oracles.store_walk import Cell, all_columns
from tests.waiting import PATIENCE


@pytest.fixture(params=["sqlite", "postgresql"])
def read_only_url(request: pytest.FixtureRequest) -> str:
    """URL of a database with the schema that refuses to be written."""
    url: str = request.getfixturevalue(f"new_{request.param}")()
    if request.param == "sqlite":
        return f"{url}?mode=ro"
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    return url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "the database URL cannot be read; give sqlite:///"),
        ("postgresql://user:hush@host:5432x/y", "the database URL cannot be read; give sqlite:///"),
        ("mysql://localhost/x", "no support for a database of kind mysql"),
        ("sqlite://", "in memory cannot be shared"),
        ("sqlite:///:memory:", "in memory cannot be shared"),
    ],
)
def test_other_addresses_are_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as told:
        make_engine(url)
    assert "hush" not in str(told.value)


def test_an_empty_database_says_which_command_to_run(empty_database_url: str) -> None:
    with pytest.raises(UnavailableError, match=r"ballast migrate|cannot be reached or opened") as failure:
        RoundStore.open(empty_database_url)
    assert "\n" not in str(failure.value)
    upgrade(empty_database_url)
    RoundStore.open(empty_database_url).close()


def test_opening_makes_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "not-there.db", tmp_path / "no-folder" / "x.db"):
        with pytest.raises(UnavailableError, match="cannot be reached or opened|ballast migrate"):
            RoundStore.open(f"sqlite:///{path}")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, and not a database\n" * 50)
    with pytest.raises(UnavailableError, match=r"notes\.txt cannot be read: not a database of this kind"):
        RoundStore.open(f"sqlite:///{path}")
    assert path.read_text().startswith("these are notes")


@pytest.mark.parametrize(("found", "message"), [("0000", "run `ballast migrate`"), ("9999", "a newer version")])
def test_another_schema_is_refused(database_url: str, found: str, message: str) -> None:
    engine = make_engine(database_url)
    with engine.execution_options(ballast_writes=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :found"), {"found": found})
    engine.dispose()
    with pytest.raises(UnavailableError, match=message):
        RoundStore.open(database_url)


def test_the_store_stands_at_the_newest_migration() -> None:
    assert SCHEMA_REVISION == head()


def test_a_read_only_database_is_refused_at_the_start(read_only_url: str) -> None:
    with pytest.raises(UnavailableError, match="is read-only; nothing was written") as failure:
        RoundStore.open(read_only_url)
    assert failure.value.code == "database_read_only"
    assert "\n" not in str(failure.value)


def test_a_read_only_database_can_be_read(read_only_url: str, plan: Plan) -> None:
    store = RoundStore.open(read_only_url, writable=False)
    assert store.runs.list_runs() == []
    with pytest.raises(UnavailableError, match="is read-only; nothing was written"):
        store.runs.create_run(plan)
    with pytest.raises(UnavailableError, match="is read-only; nothing was written"):
        downgrade(read_only_url, "base")
    assert store.runs.list_runs() == []
    store.close()


@pytest.fixture
def write_protected(new_sqlite: Callable[[], str]) -> Iterator[Path]:
    """A database file that its account may not write, in a folder that anyone may read."""
    folder = Path(tempfile.mkdtemp(prefix="protected-"))
    folder.chmod(0o755)
    path = folder / "ballast.db"
    shutil.copyfile(new_sqlite().removeprefix("sqlite:///"), path)
    path.chmod(0o444)
    yield path
    shutil.rmtree(folder)


def test_a_write_protected_file_is_refused_and_left_alone(write_protected: Path) -> None:
    script = """
        import os, sys
        from services.contracts.errors import UnavailableError
        from services.round_store.store import RoundStore
        import sqlalchemy.dialects.sqlite
        if os.geteuid() == 0:  # who may write anything
            os.setgid(65534)
            os.setuid(65534)
        try:
            RoundStore.open(f"sqlite:///{sys.argv[1]}")
        except UnavailableError as error:
            print(error.code, error)
    """
    before = write_protected.read_bytes()
    command = [sys.executable, "-c", textwrap.dedent(script), str(write_protected)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    wanted = f"database_read_only the database {write_protected} is read-only; nothing was written"
    assert done.stdout.startswith(wanted), done.stderr
    assert done.stdout.count("\n") == 1
    assert write_protected.read_bytes() == before


def test_a_full_disk_is_no_damage(new_sqlite: Callable[[], str]) -> None:
    """Readers and writers of SQLite share a file that is made at the first look: without room for it none can look."""
    script = """
        import resource, sys
        from services.contracts.errors import UnavailableError
        from services.round_store.store import RoundStore
        import sqlalchemy.dialects.sqlite
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            RoundStore.open(sys.argv[1])
        except UnavailableError as error:
            print(error.code, error)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), new_sqlite()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.startswith("database_full the database "), done.stderr
    assert done.stdout.endswith("has no room left on its disk; nothing was written\n")


def test_a_disk_that_fails_is_no_damage_either() -> None:
    cause = sqlite3.OperationalError("disk I/O error")
    cause.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
    assert kind_of(OperationalError("SELECT 1", {}, cause)) == "disk"


@pytest.mark.parametrize(("state", "kind"), [
    ("57P01", "cannot_open"), ("08006", "cannot_open"), ("28P01", "cannot_open"), ("3D000", "cannot_open"),
    ("53100", "full"), ("57014", None), ("23505", None),
])
def test_what_postgresql_answers_is_known_by_its_class(state: str, kind: str | None) -> None:
    """A server that shuts down, a connection that it ends, a password that is not taken, a database that is gone."""
    cause = psycopg.errors.lookup(state)("no")
    assert cause.sqlstate == state and kind_of(OperationalError("SELECT 1", {}, cause)) == kind


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot be reached or opened") as failure:
        RoundStore.open("postgresql://me:secret@127.0.0.1:1/ballast")
    assert "secret" not in str(failure.value)


def test_a_database_that_is_not_there(new_postgresql: Callable[[], str]) -> None:
    url = new_postgresql().replace("/db_", "/no_db_")
    with pytest.raises(UnavailableError, match="cannot be reached or opened"):
        RoundStore.open(url)


def test_a_server_that_is_too_old_is_told_at_the_start(
    new_postgresql: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_postgresql()
    monkeypatch.setattr(schema, "OLDEST_POSTGRESQL", 99)
    with pytest.raises(UnavailableError, match=r"is on PostgreSQL \d[\d.]*; 99 or newer is needed"):
        RoundStore.open(url)


def test_a_busy_file_is_said_to_be_busy(new_sqlite: Callable[[], str], plan: Plan) -> None:
    url = new_sqlite()
    store, other = RoundStore.open(url), RoundStore.open(url)
    with other.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=50")
    with store.atomic() as unit:
        unit.runs.create_run(plan)
        with pytest.raises(UnavailableError, match="locked by another process for too long"):
            other.runs.create_run(plan)
    with pytest.raises(ConflictError):
        other.runs.create_run(plan)
    store.close()
    other.close()


def test_sqlite_is_set_up_for_several_processes(new_sqlite: Callable[[], str]) -> None:
    engine = make_engine(new_sqlite())
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1
        assert connection.scalar(text("PRAGMA busy_timeout")) == 15_000
        assert connection.scalar(text("PRAGMA synchronous")) == 2, "FULL: a committed round outlives a power cut"
        assert connection.scalar(text("PRAGMA wal_autocheckpoint")) == 8000, "a large round is written back once"
    engine.dispose()


def test_a_writer_waits_as_long_as_whoever_opens_the_store_says(new_sqlite: Callable[[], str]) -> None:
    opened = RoundStore.open(new_sqlite(), busy_seconds=0.25)
    with opened.engine.connect() as connection:
        assert connection.scalar(text("PRAGMA busy_timeout")) == 250
    opened.close()


def test_a_file_that_another_reads_while_its_log_is_switched_over_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, waits = tmp_path / "old.db", []
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("CREATE TABLE one (x)")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM one").fetchall()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            reader.execute("COMMIT")

    monkeypatch.setattr(time, "sleep", wait)
    engine = make_engine(f"sqlite:///{path}", busy_seconds=0.0)
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
    assert len(waits) == 2
    engine.dispose()
    reader.close()


def test_a_log_that_fails_while_it_is_switched_over_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def execute(self, statement: str) -> Failing:
            if "=" in statement:
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
                raise error
            return self

        def fetchone(self) -> tuple[str]:
            return ("delete",)

    connection: Any = Failing()
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits for a disk that failed"))
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        session._write_ahead(connection)


def test_a_path_may_have_characters_that_a_url_gives_a_meaning(tmp_path: Path) -> None:
    path = tmp_path / "a#b%41.db"
    upgrade(f"sqlite:///{path}")
    RoundStore.open(f"sqlite:///{path}").close()
    assert path.is_file() and {each.name.removesuffix("-wal").removesuffix("-shm") for each in tmp_path.iterdir()} == {
        path.name
    }


def test_the_short_name_of_postgresql_is_known() -> None:
    engine = make_engine("postgres://me@127.0.0.1/ballast")
    assert (engine.url.drivername, engine.url.database) == ("postgresql+psycopg", "ballast")


def test_a_connection_that_the_server_closed_meanwhile_is_replaced(new_postgresql: Callable[[], str]) -> None:
    url = new_postgresql()
    opened = RoundStore.open(url)
    assert opened.runs.list_runs() == []
    with psycopg.connect(url, autocommit=True) as connection:
        others = "pg_stat_activity WHERE application_name = 'ballast' AND datname = current_database()"
        assert connection.execute(f"SELECT pg_terminate_backend(pid) FROM {others}").fetchall() == [(True,)]
    assert opened.runs.list_runs() == []
    opened.close()


def test_a_store_that_is_refused_keeps_no_connection(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[Engine] = []

    def made(url: str, **_options: object) -> Engine:
        engines.append(make_engine(url))
        return engines[-1]

    monkeypatch.setattr(store_module, "make_engine", made)
    monkeypatch.setattr("services.round_store.database.schema.SCHEMA_REVISION", "9999")
    with pytest.raises(UnavailableError, match="ballast migrate|a newer version"):
        RoundStore.open(database_url)
    (engine,) = engines
    assert isinstance(engine.pool, QueuePool) and engine.pool.checkedin() == 0


def test_the_clock_of_a_lease_goes_on_within_a_transaction(new_postgresql: Callable[[], str]) -> None:
    """PostgreSQL's now() stands still from the transaction's beginning: a lease taken late would end early."""
    store = RoundStore.open(new_postgresql())
    try:
        with store.database.read() as session:
            moments = [utc_now(session) for _ in range(3)]
        assert moments[0] < moments[1] < moments[2] and moments[0].utcoffset() == timedelta(0)
    finally:
        store.close()


def test_no_document_has_a_number_that_json_has_not(store: RoundStore) -> None:
    row = {"name": "pump", "version": 1, "fingerprint": "f", "created_at": datetime(2030, 1, 1, tzinfo=UTC)}
    for wrong in (float("nan"), float("inf")):
        with pytest.raises((StatementError, ValueError), match="not JSON compliant"), store.database.write() as session:
            session.execute(insert(AssetTypeRow).values(**row, document={"low": wrong}))
    assert store.asset_types.list_asset_types() == []


def test_a_failed_block_is_rolled_back(store: RoundStore, plan: Plan) -> None:
    with pytest.raises(ZeroDivisionError), store.atomic() as unit:
        unit.runs.create_run(plan)
        _ = 1 / 0
    assert store.runs.list_runs() == []


def test_the_walk_sees_every_value_of_every_table(store: RoundStore, plan: Plan) -> None:
    run = store.runs.create_run(plan)
    with store.engine.execution_options(ballast_writes=True).begin() as connection:
        connection.execute(text("CREATE TABLE of_someone_else (secret VARCHAR)"))
        connection.execute(text("INSERT INTO of_someone_else VALUES ('canary')"))
    cells = list(all_columns(store.engine))
    assert Cell("runs", "run_id", run.run_id) in cells
    assert Cell("of_someone_else", "secret", "canary") in cells
    assert Cell("alembic_version", "version_num", SCHEMA_REVISION) in cells
    assert {cell.column for cell in cells if cell.table == "runs"} >= {"plan", "lease_until", "gap", "absentees"}
