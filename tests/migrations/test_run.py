"""Migrations, up and down, on both servers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from migrations import run
from migrations.__main__ import main
from services.contracts.errors import ConflictError
from services.contracts.plans.plan import Plan
from services.round_store.database.session import make_engine
from services.round_store.store import RoundStore
from services.round_store.tables.all_tables import METADATA
from tests.waiting import PATIENCE


def tables(url: str) -> set[str]:
    engine = make_engine(url)
    with engine.connect() as connection:
        found = set(inspect(connection).get_table_names())
    engine.dispose()
    return found


def differences(url: str) -> list[Any]:
    """What Alembic would have to change in a database to match the tables; empty when they agree."""
    engine = make_engine(url)
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), METADATA)
    engine.dispose()
    return list(found)


def test_the_schema_is_that_of_the_tables(database_url: str) -> None:
    assert differences(database_url) == []
    assert run.current(database_url) == run.head()
    assert tables(database_url) == {*METADATA.tables, "alembic_version"}


def test_a_difference_would_be_found(database_url: str) -> None:
    engine = make_engine(database_url)
    with engine.execution_options(ballast_writes=True).begin() as connection:
        connection.execute(text("ALTER TABLE plans ADD COLUMN surplus VARCHAR"))
    engine.dispose()
    assert [difference[0] for difference in differences(database_url)] == ["remove_column"]


def test_down_to_nothing_and_up_again(database_url: str) -> None:
    assert run.downgrade(database_url, "base") is None
    assert tables(database_url) == {"alembic_version"}
    assert run.current(database_url) is None
    assert run.upgrade(database_url) == run.head()
    assert differences(database_url) == []
    store = RoundStore.open(database_url)
    assert store.audit.append(actor="me", role=None, action="test", target="x").number == 1
    store.close()


def test_an_upgrade_keeps_what_is_there(database_url: str) -> None:
    store = RoundStore.open(database_url)
    created = store.runs.create_run(Plan(name="weekly", asset_type="pump"))
    assert run.upgrade(database_url) == run.head()
    assert store.runs.get_run(created.run_id) == created
    store.close()


def test_a_run_of_the_first_schema_excluded_nobody_and_showed_each_site(database_url: str) -> None:
    store = RoundStore.open(database_url)
    created = store.runs.create_run(Plan(name="weekly", asset_type="pump", reveal="each site"))
    later = store.runs.create_run(Plan(name="daily", asset_type="pump"))
    store.close()
    assert run.downgrade(database_url, "0001") == "0001"
    engine = make_engine(database_url)
    with engine.connect() as connection:
        plans = [json.loads(plan) for (plan,) in connection.execute(text("SELECT CAST(plan AS TEXT) FROM runs"))]
    engine.dispose()
    since = {"reveal", "min_cohort", "sum_threshold", "auditor", "noise", "largest_share", "sample_factor"}
    assert len(plans) == 2 and not any(since & plan.keys() for plan in plans), "an older version would refuse them"
    assert run.upgrade(database_url) == run.head()
    store = RoundStore.open(database_url)
    assert store.runs.get_run(created.run_id) == created and created.excluded == ()
    assert later.plan.reveal == "sums" and store.runs.get_run(later.run_id).plan.reveal == "each site"
    store.close()


def test_versions_that_were_deleted_with_a_plant_before_say_so_since(database_url: str) -> None:
    store = RoundStore.open(database_url)
    ran = store.runs.create_run(Plan(name="weekly", asset_type="pump"))
    for name, version in (("weekly", "1"), ("weekly", "2"), ("weekly", "3"), ("daily", "1")):
        store.model_versions.add(name, version, ran.run_id, {})
    for action, deleted in (("model.unlearned", ["2", "1"]), ("model.unlearned", []), ("model.promote", ["3"])):
        store.audit.append(
            actor="flows", role=None, action=action, target="model:weekly", after={"versions_deleted": deleted}
        )
    store.audit.append(actor="me", role=None, action="model.unlearned", target="model:daily")
    store.close()
    assert run.downgrade(database_url, "0012") == "0012"
    assert run.upgrade(database_url) == run.head()
    store = RoundStore.open(database_url)
    assert store.model_versions.forgotten({"weekly", "daily"}) == {("weekly", "1"), ("weekly", "2")}
    assert store.audit.verify_chain().ok
    store.close()
    run.downgrade(database_url, "0012")
    engine = make_engine(database_url)
    with engine.connect() as connection:
        known = set(connection.scalars(text("SELECT DISTINCT status FROM model_versions")))
    engine.dispose()
    assert known == {"registered", "gates_failed"}, "an older program knows no other"


def test_several_processes_may_upgrade_at_once(empty_database_url: str) -> None:
    make = [empty_database_url] * 4
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run.upgrade, make)) == [run.head()] * 4
    assert differences(empty_database_url) == []


def test_a_failed_upgrade_leaves_the_database_as_it_was(empty_database_url: str) -> None:
    """The last table that the migration makes is there already, so it fails after it has made the others."""
    engine = make_engine(empty_database_url, create=True)
    with engine.execution_options(ballast_writes=True).begin() as connection:
        connection.execute(text("CREATE TABLE audit_head (mine INTEGER)"))
    engine.dispose()
    with pytest.raises(ConflictError, match="cannot be migrated: .*audit_head.* already exists; nothing was changed"):
        run.upgrade(empty_database_url)
    assert tables(empty_database_url) == {"audit_head"}
    assert run.current(empty_database_url) is None


def test_lost_references_stop_a_migration_on_sqlite(
    new_sqlite: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Foreign keys are off while tables are made anew, so they are checked before the commit."""
    url = new_sqlite()

    def lose(connection: Connection, _what: object, _revision: str) -> None:
        connection.execute(text("INSERT INTO run_states (run_id, round, frame) VALUES ('nowhere', 1, x'00')"))

    monkeypatch.setattr(run, "_run", lose)
    with pytest.raises(ConflictError, match="would lose references in run_states; nothing was changed"):
        run.upgrade(url)
    engine = make_engine(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM run_states")) == 0
    engine.dispose()


def test_unknown_revisions_are_refused(database_url: str) -> None:
    with pytest.raises(ConflictError, match="cannot be migrated: .*no-such-revision"):
        run.upgrade(database_url, "no-such-revision")
    engine = make_engine(database_url)
    with engine.execution_options(ballast_writes=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(ConflictError, match="schema 9999, written by a newer version.*install the newer version"):
        run.upgrade(database_url)


def test_the_command(empty_database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", empty_database_url, "0002"]) == 0
    assert main(["upgrade", empty_database_url]) == 0
    assert main(["current", empty_database_url]) == 0
    assert main(["downgrade", empty_database_url, "base"]) == 0
    assert capsys.readouterr().out.split() == ["0002", run.head(), run.head(), "base"]
    assert main(["current", "mysql://localhost/x"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(SystemExit):
        main(["downgrade", empty_database_url])


def test_a_database_that_is_not_there_is_not_made_to_be_taken_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["downgrade", f"sqlite:///{tmp_path}/none.db", "base"], ["current", f"sqlite:///{tmp_path}/none.db"]):
        assert main(command) == 1
        assert capsys.readouterr().err.endswith("none.db cannot be reached or opened\n")
    assert list(tmp_path.iterdir()) == []


def test_migrations_run_from_an_installed_package(tmp_path: Path) -> None:
    """Only the folders that a wheel carries, in another place, and no working directory that helps."""
    root = Path(run.__file__).parents[1]
    site = tmp_path / "site"
    for package in ("models", "services", "migrations"):
        for file in (root / package).rglob("*"):
            if file.suffix in {".py", ".mako"}:
                target = site / file.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())
    url = f"sqlite:///{tmp_path / 'x.db'}"
    done = subprocess.run(
        [sys.executable, "-m", "migrations", "upgrade", url],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{run.head()}\n", "")
    assert differences(url) == []
