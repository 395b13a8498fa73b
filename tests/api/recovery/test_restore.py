"""Where a backup is restored to, and what comes with it as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from api.backend.wiring import open_backend
from api.recovery.backup import make_backup
from api.recovery.restore import restore_backup
from migrations.run import current, downgrade, head, upgrade
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.plans.plan import Plan
from services.process.settings import Settings
from services.round_store.store import RoundStore
from tests.api.recovery.test_backup import CHEAP, NOWHERE, WORD, backed_up


def test_what_stood_elsewhere_is_restored_into_the_home_where_that_is_asked(home: Path, tmp_path: Path) -> None:
    """Into a folder that is there and empty; the settings of the backup and the environment name other places."""
    elsewhere = tmp_path / "elsewhere.db"
    (home / "ballast.db").rename(elsewhere)
    (home / "mlflow.db").rename(tmp_path / "mlflow.db")
    (home / "ballast.toml").write_text(
        f'lease_seconds = 4.0\n  database_url = "sqlite:///{elsewhere}"\n\n[mlflow]\n'
        f'tracking_uri = "sqlite:///{tmp_path}/mlflow.db"\nartifact_root = "{tmp_path}/artifacts"\n'
    )
    file, new = backed_up(home, tmp_path / "b"), tmp_path / "new"
    with pytest.raises(ConflictError, match="is not empty"):
        restore_backup(file, new, WORD, environment=NOWHERE)
    new.mkdir()
    given = {"BALLAST_DATABASE_URL": f"sqlite:///{elsewhere}", "BALLAST_LEASE_SECONDS": "5.0"}
    restore_backup(file, new, WORD, self_contained=True, environment=given)
    settings = Settings.load(new, NOWHERE)
    assert settings.lease_seconds == 4.0 and f"sqlite:///{new}/" in settings.database
    assert f"sqlite:///{new}/" in settings.tracking_uri and str(new) in str(settings.artifact_root)
    assert (new / "ballast.db").exists() and (new / "mlflow.db").exists()


def test_a_trail_that_was_broken_before_the_backup_is_restored_as_it_was(home: Path, tmp_path: Path) -> None:
    with open_backend(Settings.load(home, NOWHERE)) as backend:
        run = backend.store.runs.create_run(Plan(name="weekly", asset_type="rig"))
        for _ in range(2):
            backend.store.audit.append(actor="me", role=None, action="noted", target="x")
        with backend.store.database.write() as session:
            session.execute(text("DROP TRIGGER audit_events_no_update"))
            session.execute(text("UPDATE audit_events SET actor = 'nobody' WHERE number = 1"))
        before = backend.store.audit.verify_chain()
        told = make_backup(backend, tmp_path / "told", WORD, CHEAP)
    assert told.notes == [f"the audit trail does not hold: {before.problem}"]
    file = backed_up(home, tmp_path / "b")
    done = restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE)
    assert done.unfinished == [run.run_id] and not before.ok
    store = RoundStore.open(Settings.load(tmp_path / "new", NOWHERE).database)
    assert store.audit.verify_chain().problem == before.problem == done.manifest.audit_problem
    store.close()


def test_a_database_that_a_restore_emptied_again_is_an_empty_one(home: Path, tmp_path: Path) -> None:
    """One that failed leaves the table in which the schema's number stood."""
    with open_backend(Settings.load(home, NOWHERE)) as backend:
        assert make_backup(backend, tmp_path / "b", WORD, CHEAP).notes == []
    given = f"sqlite:///{tmp_path}/given.db"
    upgrade(given)
    downgrade(given, "base")
    done = restore_backup(tmp_path / "b", tmp_path / "new", WORD, environment={"BALLAST_DATABASE_URL": given})
    assert done.rows > 0 and current(given) == head()


@pytest.mark.parametrize(("file", "why"), [("nothing", "No such file"), (".", "Is a directory")])
def test_of_a_backup_that_cannot_be_read_one_line_is_said_and_nothing_made(tmp_path: Path, file: str, why: str) -> None:
    with pytest.raises(UnavailableError, match=f"cannot be read: {why}"):
        restore_backup(tmp_path / file, tmp_path / "new", WORD, environment=NOWHERE)
    assert not (tmp_path / "new").exists()
