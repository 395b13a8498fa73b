"""Logs of years stay small: a long one is kept beside, and its process goes on writing to the file that it has open."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from api.cli.processes import log_files
from api.cli.processes.log_files import shorten
from api.cli.processes.supervisor import Child, Supervisor
from tests.waiting import wait_until

WRITES = (
    "import os, sys, time\n"
    "for number in range(400):\n    print('line', number, flush=True)\n"
    "while not os.path.exists(sys.argv[1]):\n    time.sleep(0.05)\n"
    "print('OSError: at last', flush=True)\ntime.sleep(60)"
)


def test_a_long_log_is_kept_beside_and_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "MOST_BYTES", 100)
    log, older = tmp_path / "x.log", tmp_path / "x.log.1"
    assert not shorten(log)
    log.write_bytes(b"a" * 100)
    assert not shorten(log) and not older.exists()
    log.write_bytes(b"b" * 101)
    assert shorten(log) and log.stat().st_size == 0
    assert older.read_bytes() == b"b" * 101 and older.stat().st_mode & 0o077 == 0
    log.write_bytes(b"c" * 200)
    assert shorten(log) and older.read_bytes() == b"c" * 200


def test_a_disk_that_takes_no_copy_gets_its_room_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log_files, "MOST_BYTES", 100)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    log = tmp_path / "x.log"
    log.write_bytes(b"b" * 101)
    assert shorten(log) and log.stat().st_size == 0 and [*tmp_path.iterdir()] == [log]


def test_a_log_that_goes_meanwhile_and_a_folder_in_the_place_of_its_copy_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "MOST_BYTES", 100)
    log = tmp_path / "x.log"
    log.write_bytes(b"b" * 101)
    (tmp_path / "x.log.1").mkdir()
    assert shorten(log) and log.stat().st_size == 0 and (tmp_path / "x.log.1").is_dir()
    (tmp_path / "x.log.1").rmdir()
    log.write_bytes(b"b" * 101)
    monkeypatch.setattr(shutil, "copyfileobj", lambda *_: log.unlink())
    assert shorten(log) and not log.exists()


def test_a_child_goes_on_in_the_log_that_was_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the file would be as long as before, with a hole for a beginning; its last words are still found."""
    monkeypatch.setattr(log_files, "MOST_BYTES", 2000)
    log = tmp_path / "writer.log"
    log.write_text("of a life before\n" * 10)
    with Supervisor(tmp_path, print) as supervisor:
        supervisor.start(Child("writer", [sys.executable, "-c", WRITES, str(tmp_path / "go")], lambda: True))
        wait_until(lambda: "line 399" in log.read_text(), "lines")
        supervisor.tend()
        (tmp_path / "go").touch()
        wait_until(lambda: "at last" in log.read_text(), "the last line")
        assert log.read_text() == "OSError: at last\n"
        assert supervisor._tail("writer").startswith("OSError: at last")
    assert (tmp_path / "writer.log.1").read_text().endswith("line 399\n")
