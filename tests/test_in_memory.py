"""Temporary files of tests: in memory where there is room for them, and nothing of them is left there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import in_memory

GONE = 2**22 + 1
"""More than any process's number."""


@pytest.fixture
def unnamed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody named a folder, and there is room; afterwards all is as it was."""
    monkeypatch.setenv("TMPDIR", "named")
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(tempfile, "tempdir", tempfile.tempdir)
    monkeypatch.setattr(in_memory, "_available", lambda: in_memory.ROOM)
    monkeypatch.setattr(in_memory, "ROOM", 1)
    yield
    os.environ.pop("TMPDIR", None)


@pytest.mark.usefixtures("unnamed")
def test_all_temporary_files_go_there_and_those_of_killed_tests_are_removed(tmp_path: Path) -> None:
    (tmp_path / f"{in_memory.PREFIX}{GONE}" / "left").mkdir(parents=True)
    (tmp_path / f"{in_memory.PREFIX}{os.getppid()}").mkdir()
    folder = in_memory.write_in_memory(tmp_path, tmp_path)
    assert folder == tmp_path / f"{in_memory.PREFIX}{os.getpid()}" and folder.is_dir()
    assert tempfile.gettempdir() == str(folder)
    child = "import tempfile; print(tempfile.gettempdir())"
    assert subprocess.check_output([sys.executable, "-c", child], text=True).strip() == str(folder)
    (folder / "file").touch()
    in_memory.forget(folder)
    assert {path.name for path in tmp_path.iterdir()} == {f"{in_memory.PREFIX}{os.getppid()}"}
    assert tempfile.gettempdir() != str(folder)


@pytest.mark.usefixtures("unnamed")
def test_a_folder_that_is_named_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert in_memory.write_in_memory(tmp_path, tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize(("limit", "used", "room"), [("10", "9", True), ("10", "10", False), ("max", "10", True)])
def test_a_container_has_the_room_that_its_limit_leaves(tmp_path: Path, limit: str, used: str, room: bool) -> None:
    (tmp_path / "memory.max").write_text(limit)
    (tmp_path / "memory.current").write_text(used)
    assert in_memory.has_room(tmp_path, tmp_path) is room


@pytest.mark.usefixtures("unnamed")
def test_there_is_no_room_without_memory_or_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_memory.has_room(tmp_path / "none", tmp_path)
    monkeypatch.setattr(in_memory, "_available", lambda: 0)
    assert not in_memory.has_room(tmp_path, tmp_path)
