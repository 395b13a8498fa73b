"""Whether a server took its users is seen by its log; the real one is asked in ``tests/api/sites/test_keys.py``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.bus import reload
from services.bus.configuration import BusFiles, users_text
from services.bus.server import prepare
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.keys.signing import new_seed_file, public_key

STARTED, TAKEN = f"[7] [INF] {reload.STARTED}\n", f"[7] [INF] {reload.TAKEN}\n"
REFUSED = f"[7] [ERR] {reload.REFUSED}Duplicate nkey\n"


@pytest.fixture
def files(tmp_path: Path) -> BusFiles:
    return BusFiles(tmp_path)


def test_two_users_with_one_key_are_refused_before_anything_is_written(files: BusFiles) -> None:
    def start(**keys: str) -> None:
        prepare(files, host="127.0.0.1", port=1, host_names=["127.0.0.1"], site_keys=keys)

    key = new_seed_file(files.folder / "plant.nk")
    start(east=key)
    before, own = files.users.read_text(), public_key(files.coordinator_seed)
    for keys, said in (({"west": own}, "site west bears the key of the OEM"),
                       ({"east": key, "west": f"{own} {key}"}, "site west bears the key of the OEM"),
                       ({"east": key, "west": key}, "site west bears the key of site east")):
        with pytest.raises(ConflictError, match=f"{said}.*`ballast site remove west`"):
            start(**keys)
    assert files.users.read_text() == before
    other = new_seed_file(files.folder / "other.nk")
    assert users_text(own, {"east": f"{other} {key}"}).count("nkey") == 3, "two keys of one plant are two users"


@pytest.mark.parametrize(("log", "why"), [
    ("", ""), (STARTED + REFUSED, "Duplicate nkey"), (STARTED + REFUSED + TAKEN, ""), (REFUSED + STARTED, ""),
    (STARTED + TAKEN + REFUSED + "[7] [INF] more\n", "Duplicate nkey"),
])
def test_what_counts_is_the_last_that_the_log_says(files: BusFiles, log: str, why: str) -> None:
    assert reload.refused_reload(files) == ""
    files.log.write_text(log)
    assert reload.refused_reload(files) == why


def test_a_number_that_is_another_users_process_now_is_no_server(
    files: BusFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart of the host the number of before may be any process of the system's."""
    def refused(pid: int, number: int) -> None:
        assert (pid, number) == (1, 0)
        raise PermissionError(1, "Operation not permitted")

    files.pid.write_text("1\n")
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "kill", refused)
    assert reload.running_pid(files) is None
    reload.reload(files)


def running(monkeypatch: pytest.MonkeyPatch, files: BusFiles, said: str) -> None:
    """A server that says this when it is told to read its configuration."""
    def told(pid: int, number: int) -> None:
        with files.log.open("a") as log:
            log.write(said)

    monkeypatch.setattr(reload, "running_pid", lambda _: 7)
    monkeypatch.setattr(os, "kill", told)
    monkeypatch.setattr(reload, "PATIENCE_SECONDS", 0.05)


@pytest.mark.parametrize(("said", "why"), [(REFUSED, "did not take its users: Duplicate nkey$"), ("", "did not say")])
def test_a_server_that_refuses_or_is_silent_has_not_taken_it(
    files: BusFiles, monkeypatch: pytest.MonkeyPatch, said: str, why: str
) -> None:
    files.log.write_text(STARTED + TAKEN)
    running(monkeypatch, files, said)
    with pytest.raises(UnavailableError, match=why):
        reload.reload(files)


def test_what_an_earlier_reload_said_does_not_count(files: BusFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    files.log.write_text(STARTED + REFUSED)
    running(monkeypatch, files, TAKEN)
    reload.reload(files)
    files.log.unlink()
    monkeypatch.setattr(os, "kill", lambda *_: None)
    reload.reload(files)  # without a log it is told, and not waited for


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a system without /proc says nothing of its processes")
def test_a_server_that_ended_is_not_waited_for(files: BusFiles, tmp_path: Path) -> None:
    program = tmp_path / "nats-server"
    program.symlink_to(sys.executable)
    process = subprocess.Popen([program, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    files.pid.write_text(str(process.pid))
    assert process.stdin is not None
    try:
        while Path(f"/proc/{process.pid}/comm").read_text().strip() != "nats-server":
            pass
        assert reload.running_pid(files) == process.pid
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert reload.running_pid(files) is None, "it ended, and its parent has not asked"
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(not Path("/proc/self/comm").exists(), reason="a system without /proc says nothing of its processes")
def test_a_number_that_is_another_program_now_is_no_server(files: BusFiles) -> None:
    files.pid.write_text(str(os.getpid()))
    assert reload.running_pid(files) is None, "this one runs Python"


@pytest.mark.parametrize("number", ["0", "-1", "-7", "9" * 30, "", "seven"])
def test_what_is_no_number_of_a_process_is_no_server(
    files: BusFiles, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    """A signal to 0 or below goes to groups of processes: to the API itself."""
    told = list[int]()

    def kill(pid: int, _: int) -> None:
        if abs(pid) >= 2**31:
            raise OverflowError("signed integer is greater than maximum")
        told.append(pid)

    monkeypatch.setattr(os, "kill", kill)
    files.pid.write_text(number)
    reload.reload(files)
    assert reload.running_pid(files) is None and told == []


def test_a_server_that_ends_before_it_is_told_reads_its_users_when_it_starts(
    files: BusFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(pid: int, number: int) -> None:
        raise ProcessLookupError(3, "No such process")

    running(monkeypatch, files, "")
    monkeypatch.setattr(os, "kill", gone)
    reload.reload(files)


def test_a_log_that_is_moved_away_is_looked_for_again(files: BusFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    files.log.write_text(STARTED * 9)
    running(monkeypatch, files, "")
    monkeypatch.setattr(os, "kill", lambda pid, _: files.log.unlink())
    monkeypatch.setattr(time, "sleep", lambda _: files.log.write_text(TAKEN))
    reload.reload(files)
