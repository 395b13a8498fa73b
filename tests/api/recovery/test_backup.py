"""`ballast backup` and `ballast restore`: what is refused, what is left behind, and backups of older versions."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlflow import MlflowClient
from sqlalchemy import text

from api.backend.first_keys import begin_with_keys
from api.backend.wiring import open_backend
from api.cli.main import main
from api.recovery import restore as restoring
from api.recovery.backup import make_backup, snapshot
from api.recovery.restore import restore_backup
from migrations.run import current, head, upgrade
from services.backup import archive, tables
from services.backup.sealed_stream import KeyCost, SealedWriter
from services.contracts.errors import BallastError, ConflictError, UnavailableError
from services.contracts.history.audit import BACKUP_MADE, GENESIS, AuditEvent
from services.identity.service_keys import PSEUDONYMS, OtherKeyError
from services.process.settings import Settings
from services.round_store.database.session import make_engine
from services.round_store.store import RoundStore
from tests.compatibility.stored import unpack

WORD = "correct horse battery"
CHEAP = KeyCost(operations=1, memory=8192)
NOWHERE: dict[str, str] = {}


def backed_up(home: Path, file: Path, word: str = WORD) -> Path:
    with open_backend(Settings.load(home, NOWHERE)) as backend:
        backend.store.audit.append(actor="me", role=None, action="noted", target="x")
        make_backup(backend, file, word, CHEAP)
    return file


@pytest.mark.parametrize(("variable", "place", "said"), [
    ("BALLAST_MLFLOW_TRACKING_URI", "http://127.0.0.1:1", "the registry is a server of its own and not in the backup"),
    ("BALLAST_MLFLOW_ARTIFACT_ROOT", "s3://bucket/models", "the artifacts are in a store of their own and not in the"),
])
def test_what_a_backup_does_not_hold_is_said_with_it(
    home: Path, tmp_path: Path, variable: str, place: str, said: str
) -> None:
    with open_backend(Settings.load(home, {variable: place})) as backend:
        made = make_backup(backend, tmp_path / "b", WORD, CHEAP)
    assert made.artifacts == 0 and sum(note.startswith(said) for note in made.notes) == 1


def test_a_home_comes_back(home: Path, tmp_path: Path) -> None:
    file = backed_up(home, tmp_path / "b")
    with open_backend(Settings.load(home, NOWHERE)) as backend:
        (made,) = backend.store.audit.list_events(action=BACKUP_MADE)
        again = make_backup(backend, tmp_path / "again", WORD, CHEAP)
    assert again.rows == restore_backup(tmp_path / "again", tmp_path / "third", WORD, environment=NOWHERE).rows > 2
    assert made.after == {"file": "b", "bytes": file.stat().st_size}
    done = restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE)
    assert done.manifest.audit_events == 1
    settings = Settings.load(tmp_path / "new", NOWHERE)
    assert (settings.lease_seconds, settings.api.port) == (4.0, 8123)
    assert (tmp_path / "new/webhooks.key").read_text() == "ab" * 32
    store = RoundStore.open(settings.database)
    assert [event.action for event in store.audit.list_events()] == ["backup.restored", "noted"]
    store.close()


def test_a_file_that_cannot_be_read_is_named_and_not_left_out(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Path.read_bytes

    def damaged(path: Path) -> bytes:
        if path.name == "webhooks.key":
            raise OSError(errno.EIO, "Input/output error")
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", damaged)
    with pytest.raises(UnavailableError, match=r"no backup, for .*webhooks.key cannot be read: Input/output error"):
        backed_up(home, tmp_path / "b")
    assert not any(path.name.startswith("b") for path in tmp_path.iterdir() if path.is_file())


def test_a_backup_is_of_one_state_while_others_write(database_url: str, tmp_path: Path) -> None:
    """Of rows of two states a run would have rounds that its row does not know, and the trail more than its head."""
    counted = text("SELECT count(*) FROM audit_events")
    with open_backend(Settings.load(tmp_path, {"BALLAST_DATABASE_URL": database_url})) as backend:
        with snapshot(backend) as seen:
            for number in range(2):
                backend.store.audit.append(actor="me", role=None, action="noted", target=f"x:{number}")
                assert seen.scalar(counted) == 0
        with snapshot(backend) as seen:
            assert seen.scalar(counted) == 2


def test_the_keys_of_a_service_come_back_and_one_that_is_not_there_is_told_of(home: Path, tmp_path: Path) -> None:
    begin_with_keys(Settings.load(home, NOWHERE))
    for target in ("whole", "without"):
        with open_backend(Settings.load(home, NOWHERE)) as backend:
            noted = make_backup(backend, tmp_path / f"{target}.bak", WORD, CHEAP).notes
        done = restore_backup(tmp_path / f"{target}.bak", tmp_path / target, WORD, environment=NOWHERE)
        told = [[note for note in notes if PSEUDONYMS in note] for notes in (noted, done.notes)]
        if target == "whole":
            assert told == [[], []]
            begin_with_keys(Settings.load(tmp_path / target, NOWHERE))
            (home / PSEUDONYMS).unlink()
        else:
            assert [len(each) for each in told] == [1, 1] and "the API does not start yet" in told[1][0]
            with pytest.raises(OtherKeyError, match="`ballast key replace pseudonyms.key` begins with a new one"):
                begin_with_keys(Settings.load(tmp_path / target, NOWHERE))


def test_what_cannot_be_restored_leaves_nothing(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = backed_up(home, tmp_path / "b")
    data = file.read_bytes()
    bad = tmp_path / "bad"
    there = sorted(path.name for path in tmp_path.iterdir())
    for content, word, said in (
        (data, "correct horse batterx", "passphrase"), (data[: len(data) * 3 // 4], WORD, "cut short"),
        (data[:-1], WORD, "cut short|altered"), (data + b"x", WORD, "altered|cut short"),
        (data[:70_000] + bytes([data[70_000] ^ 1]) + data[70_001:], WORD, "altered"),
        (b"PK\x03\x04", WORD, "no backup"),
    ):
        bad.write_bytes(content)
        with pytest.raises(BallastError, match=said) as refused:
            restore_backup(bad, tmp_path / "new", word, environment=NOWHERE)
        assert "\n" not in str(refused.value)
        bad.unlink()
        assert sorted(path.name for path in tmp_path.iterdir()) == there
    # Also where everything was written, and is not what it should be.
    monkeypatch.setattr(restoring, "moved_aliases", lambda *_: 1 / 0)
    close = RoundStore.close
    monkeypatch.setattr(RoundStore, "close", lambda store: (close(store), 1 / 0))
    with pytest.raises(ZeroDivisionError):
        restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE)
    assert sorted(path.name for path in tmp_path.iterdir()) == there


def test_nothing_that_is_there_is_overwritten(home: Path, tmp_path: Path) -> None:
    file = backed_up(home, tmp_path / "b")
    with pytest.raises(ConflictError, match="not empty"):
        restore_backup(file, home, WORD, environment=NOWHERE)
    before = file.read_bytes()
    with pytest.raises(ConflictError, match="never overwritten"):
        backed_up(home, file)
    with pytest.raises(UnavailableError, match="Not a directory"):
        backed_up(home, file / "below")
    assert file.read_bytes() == before
    database = f"sqlite:///{home / 'ballast.db'}"
    with pytest.raises(ConflictError, match="is not empty.*--self-contained"):
        restore_backup(file, tmp_path / "new", WORD, environment={"BALLAST_DATABASE_URL": database})
    assert not (tmp_path / "new").exists() and current(database) == head()
    assert restore_backup(
        file, tmp_path / "new", WORD, self_contained=True, environment={"BALLAST_DATABASE_URL": database}
    ).rows


def test_a_failed_restore_into_postgresql_leaves_it_empty(
    home: Path, tmp_path: Path, empty_postgresql: Callable[[], str]
) -> None:
    file, url = backed_up(home, tmp_path / "b"), empty_postgresql()
    cut = tmp_path / "cut"
    cut.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ConflictError):
        restore_backup(cut, tmp_path / "new", WORD, environment={"BALLAST_DATABASE_URL": url})
    assert current(url) is None
    restore_backup(file, tmp_path / "new", WORD, environment={"BALLAST_DATABASE_URL": url})
    assert current(url) == head()


def test_a_registry_without_a_model_is_restored_into_postgresql(
    home: Path, tmp_path: Path, empty_postgresql: Callable[[], str]
) -> None:
    """Its greatest experiment is MLflow's own, 0, with which no counter can go on."""
    file = backed_up(home, tmp_path / "b")
    registry = empty_postgresql().replace("postgresql:", "postgresql+psycopg:")
    there = {"BALLAST_DATABASE_URL": empty_postgresql(), "BALLAST_MLFLOW_TRACKING_URI": registry}
    restore_backup(file, tmp_path / "new", WORD, environment=there)
    assert MlflowClient(registry).create_experiment("first") == "1"


@pytest.mark.parametrize("revision", [f"000{number}" for number in range(1, 9)])
def test_a_backup_of_an_older_schema_is_brought_up_to_date(revision: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    upgrade(url, revision)
    event = AuditEvent.sealed(
        number=1, at=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), actor="a", role=None, action="b", target="c",
        reason="", before=None, after={"x": -0.0}, previous_hash="0" * 64,
    )
    engine = make_engine(url)
    with engine.execution_options(ballast_writes=True).begin() as connection:
        found = {table.name: table for table in tables.reflected(connection)}
        connection.execute(found["audit_events"].insert(), dict(event) | {"at": event.at.replace(tzinfo=None)})
        connection.execute(text("UPDATE audit_head SET number = 1, hash = :hash"), {"hash": event.hash})
        when = datetime(2026, 1, 1)
        site = {"site_id": "plant-1", "public_key": "U" * 56, "asset_types": ["rig"], "status": "active",
                "description": "", "enrolled_at": when, "updated_at": when, "agent_version": "", "notice": ""}
        columns = found["sites"].columns
        connection.execute(found["sites"].insert(), {name: site[name] for name in site if name in columns})
    file = tmp_path / "b"
    with file.open("wb") as opened, engine.connect() as connection:
        with archive.writing(SealedWriter(opened, WORD, CHEAP)) as writer:
            writer.add(archive.MANIFEST, archive.Manifest(
                ballast="0.0", created_at=event.at, schema_revision=revision, audit_events=1, audit_head=event.hash,
                registry_revision=None, artifact_root=None,
            ).model_dump_json().encode())
            for table in tables.reflected(connection):
                for number, part in enumerate(tables.dump(connection, table)):
                    writer.add(f"{archive.STORE}{table.name}/{number}", part)
    engine.dispose()
    restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE)
    store = RoundStore.open(Settings.load(tmp_path / "new", NOWHERE).database)
    assert store.audit.verify_chain().ok
    assert [site.site_id for site in store.sites.list_sites()] == ["plant-1"]
    store.close()


def test_another_trail_is_not_restored(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were lost on the way, though the file itself is authentic."""
    file, fill = backed_up(home, tmp_path / "b"), tables.fill

    def filled(to: Any, table: Any, *more: Any) -> int:
        if table.name == "audit_head":
            to.execute(table.insert(), {"id": 1, "number": 0, "hash": GENESIS})
        return fill(to, table, *more) if not table.name.startswith("audit") else 0

    monkeypatch.setattr(tables, "fill", filled)
    with pytest.raises(BallastError, match="audit trail is not that of the backup"):
        restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE)
    assert not (tmp_path / "new").exists()


def test_a_newer_backup_says_so(tmp_path: Path) -> None:
    file = tmp_path / "b"
    with file.open("wb") as opened, archive.writing(SealedWriter(opened, WORD, CHEAP)) as writer:
        writer.add(archive.MANIFEST, archive.Manifest(
            ballast="9.1", created_at=datetime.now(UTC), schema_revision="9999", audit_events=0, audit_head="",
            registry_revision=None, artifact_root=None,
        ).model_dump_json().encode())
    with pytest.raises(ConflictError, match="made by version 9.1"):
        restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE)


def test_what_0_1_0_stored_goes_through_a_backup(tmp_path: Path) -> None:
    unpack(tmp_path / "home")
    upgrade(Settings.load(tmp_path / "home", NOWHERE).database)
    file = backed_up(tmp_path / "home", tmp_path / "b")
    (tmp_path / "home").rename(tmp_path / "away")  # nothing of the former place is needed
    done = restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE)
    with open_backend(Settings.load(tmp_path / "new", NOWHERE)) as backend:
        name = next(iter(done.champions))
        expected = json.loads((tmp_path / "away/expected.json").read_text())
        version = backend.registry.get(name, "champion")
        np.testing.assert_array_equal(version.weights, expected["weights"])
        assert backend.predictors.diagnoser(name).diagnose(expected["samples"])


# ---- the commands


def test_the_commands(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = tmp_path / "word"
    secret.write_text(f"{WORD}\nnot this line\n")
    file, new = tmp_path / "b", tmp_path / "new"
    assert main(["backup", str(file), "--home", str(home), "--passphrase-file", str(secret)]) == 0
    said = capsys.readouterr().out
    assert "files of the home folder" in said and WORD not in said
    assert main(["restore", str(file), "--home", str(new), "--passphrase-file", str(secret)]) == 0
    said = capsys.readouterr().out
    assert "the audit trail holds with its 0 events" in said and WORD not in said
    secret.write_text("something else\n")
    assert main(["restore", str(file), "--home", str(tmp_path / "x"), "--passphrase-file", str(secret)]) == 1
    assert "the passphrase is not the backup's" in capsys.readouterr().err


def test_the_passphrase_is_in_no_argument_and_no_childs_environment(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor in the file, the home folder or what the command says."""
    monkeypatch.setenv("BALLAST_PASSPHRASE", WORD)
    seen: list[Any] = []
    made = make_backup

    def looking(backend: Any, target: Path, word: str) -> Any:
        child = [sys.executable, "-c", "import os; print(sorted(os.environ.items()))"]
        seen.append(subprocess.run(child, capture_output=True, text=True, check=True).stdout)
        return made(backend, target, word, CHEAP)

    monkeypatch.setattr("api.recovery.backup.make_backup", looking)
    assert main(["backup", str(tmp_path / "b"), "--home", str(home)]) == 0
    said = capsys.readouterr()
    assert len(seen) == 1 and WORD not in seen[0] and WORD not in said.out + said.err
    assert "BALLAST_PASSPHRASE" not in os.environ
    held = [path for path in tmp_path.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
    assert held == []
    content = (tmp_path / "b").read_bytes()
    assert b"ab" * 32 not in content  # the webhooks' key
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["backup", str(tmp_path / "c"), "--home", str(home)]) == 1
    assert "no passphrase" in capsys.readouterr().err
