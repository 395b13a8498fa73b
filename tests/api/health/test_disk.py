"""A disk without room shows in ``/readyz``, with its reason and without its place."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from api.backend.disk_space import LEAST_BYTES, disk_problem, least_room, sqlite_file, written_folders
from services.process.settings import Settings

Usage = namedtuple("Usage", "total used free")


def left(monkeypatch: pytest.MonkeyPatch, free: dict[Path, int]) -> None:
    """So many bytes are free below these folders, plenty below all others; some are neither used nor free for us."""
    def usage(folder: Path) -> Usage:
        found = free.get(Path(folder), 10**12)
        return Usage(2 * 10**12, 10**12 - found, found)

    monkeypatch.setattr(shutil, "disk_usage", usage)


@pytest.mark.parametrize(("free", "ready"), [(LEAST_BYTES, True), (LEAST_BYTES - 1, False), (0, False)])
def test_below_the_floor_the_service_is_not_ready(
    shared_world: Any, monkeypatch: pytest.MonkeyPatch, free: int, ready: bool
) -> None:
    home = shared_world.backend.settings.home.resolve()
    left(monkeypatch, {home: free})
    answer = shared_world.call(None, "GET", "/readyz")
    assert answer.status_code == (200 if ready else 503)
    if not ready:
        assert set(answer.json()["missing"]) == {"disk"} and "left, less than 200; make room" in answer.text
        assert str(home) not in answer.text


@pytest.mark.parametrize(("number", "said"), [
    (errno.ENOSPC, "is full"), (errno.EDQUOT, "quota"), (errno.EIO, "failed"), (errno.EROFS, ""), (errno.EACCES, ""),
])
def test_a_write_that_fails_for_the_disk_s_sake_says_so(
    shared_world: Any, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    def refuse(**_: object) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    answer = shared_world.call(None, "GET", "/readyz")
    missing = answer.json()["missing"]
    assert (answer.status_code == 200 and not missing) if not said else said in missing["disk"]


def test_every_folder_that_is_written_to_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, rows, files = (tmp_path / each for each in ("home", "rows", "files of runs"))
    for folder in (home, rows, files):
        folder.mkdir()
    settings = Settings.model_validate({
        "home": home, "database_url": f"sqlite:///{rows / 'ballast.db'}", "mlflow": {"artifact_root": files.as_uri()}
    })
    assert list(written_folders(settings)) == [home, rows, files]
    for folder in (home, rows, files):
        left(monkeypatch, {folder: 7})
        assert least_room(settings)[:2] == (folder, 7)
        assert disk_problem(settings).startswith("has 0 MB left")
    left(monkeypatch, {})
    assert disk_problem(settings) == "" and not list(home.iterdir())
    elsewhere = settings.model_copy(update={"database_url": "postgresql://db/ballast"})
    assert list(written_folders(elsewhere)) == [home, files]
    rooms = {home: 9, rows: 8, files: 10}
    left(monkeypatch, rooms)
    assert least_room(settings)[:2] == (rows, 8), "the one that is full first"


@pytest.mark.parametrize(("address", "found"), [
    ("sqlite:////var/lib/ballast.db", "/var/lib/ballast.db"), ("sqlite:///rows.db?mode=ro", "rows.db"),
    ("postgresql://db/ballast", None), ("sqlite://", None),
])
def test_the_file_of_a_database(address: str, found: str | None) -> None:
    assert sqlite_file(address) == (None if found is None else Path(found))


def test_artifacts_and_the_registrys_rows_are_looked_at_wherever_they_are(tmp_path: Path) -> None:
    home, rows, files = (tmp_path / each for each in ("home", "rows", "files"))
    for folder in (home, rows, files):
        folder.mkdir()
    stated = {"tracking_uri": f"sqlite:///{rows}/mlflow.db", "artifact_root": str(files)}
    assert list(written_folders(Settings.model_validate({"home": home, "mlflow": stated}))) == [home, rows, files]
    stated["artifact_root"] = "s3://bucket/files"
    assert list(written_folders(Settings.model_validate({"home": home, "mlflow": stated}))) == [home, rows]


def test_without_a_home_folder_there_is_no_room_to_tell(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        least_room(Settings.model_validate({"home": tmp_path / "nowhere", "database_url": "postgresql://db/ballast"}))


def test_a_write_is_tried_in_every_folder_that_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of another folder says nothing of them."""
    home, rows = tmp_path / "home", tmp_path / "rows"
    for folder in (home, rows):
        folder.mkdir()
    settings = Settings.model_validate({
        "home": home, "database_url": f"sqlite:///{rows / 'ballast.db'}", "mlflow": {"artifact_root": home.as_uri()}
    })
    make = tempfile.TemporaryFile

    def full(dir: Path, **given: Any) -> Any:
        if dir == rows:
            raise OSError(errno.ENOSPC, "full")
        return make(dir=dir, **given)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    assert disk_problem(settings) == "is full; make room"
