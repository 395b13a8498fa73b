"""Places that a restore goes into: volumes, and databases and folders elsewhere, which are left as they were."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.backend.wiring import open_backend
from api.models.service import promote
from api.recovery import restore as restoring
from api.recovery.kept_inside import keep_inside
from api.recovery.restore import restore_backup
from services.contracts.errors import ConflictError
from services.process.settings import Settings
from services.round_store.store import RoundStore
from tests.api.conftest import FOUNDER, put_model
from tests.api.recovery.test_backup import NOWHERE, WORD, backed_up


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that cannot be put in another's place, as a container has it, with what its file system made."""
    folder, is_mount = tmp_path / "volume", os.path.ismount
    (folder / "lost+found").mkdir(parents=True)
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == folder or is_mount(path))
    return folder


@pytest.fixture
def trained(home: Path) -> Path:
    """A home whose registry has a version with its artifacts."""
    with open_backend(Settings.load(home, NOWHERE)) as backend:
        put_model(backend, "pumps", 0.9)
    return home


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a restore fail at its very end, when everything is written."""
    monkeypatch.setattr(restoring, "moved_aliases", lambda *_: 1 / 0)


def test_a_home_that_is_a_volume_takes_what_was_restored(trained: Path, tmp_path: Path, volume: Path) -> None:
    file, there = backed_up(trained, tmp_path / "b"), volume.stat().st_ino
    done = restore_backup(file, volume, WORD, environment=NOWHERE)
    assert done.home == volume and volume.stat().st_ino == there
    assert {path.name for path in volume.iterdir()} >= {"ballast.db", "ballast.toml", "lost+found", "mlflow-artifacts"}
    assert not list(tmp_path.glob("**/*restoring*"))
    with open_backend(Settings.load(volume, NOWHERE)) as backend:
        assert backend.registry.get("pumps", "1").weights.any()
        assert backend.store.audit.verify_chain().ok
    with pytest.raises(ConflictError, match="is not empty"):
        restore_backup(file, volume, WORD, environment=NOWHERE)


def test_a_volume_is_empty_again_after_a_restore_that_failed(
    trained: Path, tmp_path: Path, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = backed_up(trained, tmp_path / "b")
    cut = tmp_path / "cut"
    cut.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ConflictError, match="cut short"):
        restore_backup(cut, volume, WORD, environment=NOWHERE)
    assert [path.name for path in volume.iterdir()] == ["lost+found"]
    broken(monkeypatch)
    with pytest.raises(ZeroDivisionError):
        restore_backup(file, volume, WORD, environment=NOWHERE)
    assert [path.name for path in volume.iterdir()] == ["lost+found"]


def test_a_registry_on_a_server_is_empty_again_after_a_restore_that_failed(
    trained: Path, tmp_path: Path, empty_postgresql: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, url, folder = backed_up(trained, tmp_path / "b"), empty_postgresql(), tmp_path / "artifacts"
    given = {"BALLAST_MLFLOW_TRACKING_URI": url, "BALLAST_MLFLOW_ARTIFACT_ROOT": folder.as_uri()}
    with monkeypatch.context() as patch:
        broken(patch)
        with pytest.raises(ZeroDivisionError):
            restore_backup(file, tmp_path / "new", WORD, environment=given)
    assert not (tmp_path / "new").exists() and not any(folder.iterdir())
    done = restore_backup(file, tmp_path / "new", WORD, environment=given)
    assert done.rows and any(folder.iterdir())
    with open_backend(Settings.load(tmp_path / "new", given)) as backend:
        assert backend.registry.get("pumps", "1").weights.any()


def test_a_registry_with_work_of_others_is_left_alone(
    trained: Path, tmp_path: Path, empty_postgresql: Callable[[], str]
) -> None:
    """An experiment without a model is work, too."""
    from services.registry.mlflow_registry import ModelRegistry

    file, url = backed_up(trained, tmp_path / "b"), empty_postgresql()
    ModelRegistry(url, (tmp_path / "theirs").as_uri()).prepare()
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO experiments (name, lifecycle_stage) VALUES ('theirs', 'active')")
    with pytest.raises(ConflictError, match="registry that the settings name is not empty"):
        restore_backup(file, tmp_path / "new", WORD, environment={"BALLAST_MLFLOW_TRACKING_URI": url})
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1 FROM experiments WHERE name = 'theirs'").fetchone() == (1,)


def test_artifacts_of_others_are_left_alone(trained: Path, tmp_path: Path) -> None:
    file, folder = backed_up(trained, tmp_path / "b"), tmp_path / "artifacts"
    folder.mkdir()
    (folder / "model.json").write_text("theirs")
    given = {"BALLAST_MLFLOW_ARTIFACT_ROOT": folder.as_uri()}
    with pytest.raises(ConflictError, match="is not empty.*--self-contained"):
        restore_backup(file, tmp_path / "new", WORD, environment=given)
    assert [path.name for path in folder.iterdir()] == ["model.json"] and not (tmp_path / "new").exists()
    assert restore_backup(file, tmp_path / "new", WORD, environment=given, self_contained=True).rows


@pytest.mark.parametrize("lines", [
    ['database_url = "x"', "lease_seconds = 4.0", "[mlflow]", "port = 5001", "artifact_root = 'y'"],
    ['"database_url"="x"', "lease_seconds = 4.0", 'mlflow.tracking_uri = "y"', "mlflow.port = 5001"],
    ["lease_seconds = 4.0  # not a line of  database_url = ''", 'mlflow = { tracking_uri = "x", port = 5001 }'],
    ["lease_seconds = 4.0", 'mlflow = { port = 5001, tracking_uri = "x" }'],
    ["lease_seconds = 4.0", 'mlflow = {artifact_root="z",port = 5001, tracking_uri = "x",host="127.0.0.1"}'],
])
def test_however_a_place_elsewhere_is_written_it_is_taken_out(tmp_path: Path, lines: list[str]) -> None:
    file = tmp_path / "ballast.toml"
    file.write_text("\n".join(lines))
    keep_inside(file)
    values: dict[str, Any] = tomllib.loads(file.read_text())
    assert values.pop("lease_seconds") == 4.0
    assert values["mlflow"].pop("port") == 5001 and set(values) == {"mlflow"} and not {*values["mlflow"]} - {"host"}


def test_what_cannot_be_taken_out_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ballast.toml"
    file.write_text('mlflow.tracking_uri = """\nx"""\n')
    with pytest.raises(ConflictError, match="in a form that cannot be taken out"):
        keep_inside(file)


def test_a_store_is_opened_where_it_was_restored(trained: Path, tmp_path: Path, volume: Path) -> None:
    """The database in a volume is that of its settings, not of the folder that it was made in."""
    restore_backup(backed_up(trained, tmp_path / "b"), volume, WORD, environment=NOWHERE)
    store = RoundStore.open(Settings.load(volume, NOWHERE).database)
    assert [event.action for event in store.audit.list_events(limit=1)] == ["backup.restored"]
    store.close()


def test_into_a_volume_what_names_the_databases_comes_first(
    trained: Path, tmp_path: Path, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is killed in between leaves a home that knows its databases, and is no fresh one to whoever starts it."""
    (trained / "a-note").write_text("before all others by its name")
    file, moved, rename = backed_up(trained, tmp_path / "b"), list[str](), Path.rename

    def noted(path: Path, target: Path) -> Path:
        if target.parent == volume:
            moved.append(path.name)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", noted)
    restore_backup(file, volume, WORD, environment=NOWHERE)
    assert set(moved[:2]) == {"ballast.db", "ballast.toml"} and "a-note" in moved


def test_a_champion_whose_files_are_not_those_that_were_registered_is_not_restored(
    trained: Path, tmp_path: Path
) -> None:
    with open_backend(Settings.load(trained, NOWHERE)) as backend:
        promote(backend, FOUNDER, "pumps", "1", "of the test")
    (document,) = [path for path in trained.glob("mlflow-artifacts/**/model.json") if "artifacts" in path.parts]
    document.write_text(document.read_text().replace('"rounds": 3', '"rounds": 4'))
    file = backed_up(trained, tmp_path / "b")
    with pytest.raises(ConflictError, match="was changed since it was registered"):
        restore_backup(file, tmp_path / "restored", WORD, environment=NOWHERE)
    assert not (tmp_path / "restored").exists()
