"""What is written for its owner alone is never readable by others, not even for a moment."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.contracts.errors import UnavailableError
from services.process.private_files import made_once, private_file, private_folder, private_opener, write_whole
from tests.on_disk import noted_steps


@pytest.fixture(autouse=True)
def _generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_is_private_with_all_that_had_to_be_made_above_it(tmp_path: Path) -> None:
    made = private_folder(tmp_path / "a" / "b")
    assert (mode(made), mode(made.parent)) == (0o700, 0o700)


def test_an_open_folder_is_shut(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o755)
    assert mode(private_folder(tmp_path / "old")) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(UnavailableError, match="belongs to another user"):
        private_folder(tmp_path / "theirs")


def test_files_have_their_mode_when_they_are_created(tmp_path: Path) -> None:
    assert mode(private_file(tmp_path / "file")) == 0o600
    with open(tmp_path / "opened", "a", opener=private_opener):
        assert mode(tmp_path / "opened") == 0o600


def test_a_secret_is_made_once_whoever_asks_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: made_once(path, lambda: f"{number}\n"), range(8)))
    assert made.count(True) == 1
    assert path.read_text() == f"{made.index(True)}\n"
    assert mode(path) == 0o600
    assert os.listdir(tmp_path) == ["secret"]


def test_a_file_is_written_whole_or_what_stood_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"one")
    write_whole(path, b"two", private=True)
    assert (path.read_bytes(), mode(path), os.listdir(tmp_path)) == (b"two", 0o600, ["file"])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(os, "replace", full)
        write_whole(path, b"three")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"two", ["file"])


def test_a_file_has_its_name_once_its_content_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut would leave an empty file in the place of the users, or of the settings, of before."""
    steps = noted_steps(monkeypatch, "replace")
    write_whole(tmp_path / "file", b"three")
    assert steps == [("forced", 5), ("named", 5)]


def test_what_is_no_file_is_written_into(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        write_whole(tmp_path / "pipe", b"all of it")
        assert os.read(end, 100) == b"all of it"
    finally:
        os.close(end)
