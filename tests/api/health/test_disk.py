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

from api.backend.disk_space import LEAST_BYTES, disk_problem, least_room, written_folders
from services.process.settings import Settings

Usage = namedtuple("Usage", "total used free")


def left(monkeypatch: pytest.MonkeyPatch, free: dict[Path, int]) -> None:
    """So many bytes are free below these folders, plenty below all others."""
    def usage(folder: Path) -> Usage:
        found = free.get(Path(folder), 10**12)
        return Usage(10**12, 10**12 - found, found)

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
