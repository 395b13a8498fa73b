"""Children are kept running, and none outlives the supervisor."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from api.cli.supervisor import Child, Supervisor
from services.contracts.errors import UnavailableError

SLEEP = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(60)"]


def alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def said(log: Path, text: str) -> Callable[[], bool]:
    return lambda: log.exists() and text in log.read_text()


def test_a_child_that_dies_is_started_again(tmp_path: Path) -> None:
    told: list[str] = []
    with Supervisor(tmp_path, told.append) as supervisor:
        supervisor.start(Child("sleeper", SLEEP, said(tmp_path / "sleeper.log", "awake")))
        supervisor.wait_ready("sleeper")
        first = supervisor.process_id("sleeper")
        os.kill(first, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while supervisor.process_id("sleeper") == first and time.monotonic() < deadline:
            time.sleep(0.02)
            supervisor.tend()
        second = supervisor.process_id("sleeper")
        assert second != first
        assert alive(second)
    assert not alive(second)
    assert told == ["sleeper ended (exit code -9); starting it again"]


def test_grandchildren_are_stopped_too(tmp_path: Path) -> None:
    script = f"import subprocess, sys; print(subprocess.Popen({SLEEP!r}).pid, flush=True); import time; time.sleep(60)"
    log = tmp_path / "parent.log"
    with Supervisor(tmp_path, print) as supervisor:
        supervisor.start(Child("parent", [sys.executable, "-c", script], said(log, "awake")))
        supervisor.wait_ready("parent")
        grandchild = int(log.read_text().split()[0])
        assert alive(grandchild)
    deadline = time.monotonic() + 5
    while alive(grandchild) and time.monotonic() < deadline:
        time.sleep(0.02)
    state = Path(f"/proc/{grandchild}/stat")
    assert not alive(grandchild) or state.read_text().split()[2] == "Z"


def test_a_child_that_cannot_start_is_told_with_its_last_line(tmp_path: Path) -> None:
    script = "import sys; sys.exit('no room on this ship')"
    with Supervisor(tmp_path, print) as supervisor:
        supervisor.start(Child("broken", [sys.executable, "-c", script], lambda: False))
        with pytest.raises(UnavailableError, match="exit code 1 before it was ready: no room on this ship"):
            supervisor.wait_ready("broken")


def test_a_child_that_ends_again_and_again_is_given_up(tmp_path: Path) -> None:
    with Supervisor(tmp_path, lambda _: None) as supervisor:
        supervisor.start(Child("broken", [sys.executable, "-c", "raise SystemExit(3)"], lambda: True))

        def tend_for_ever() -> None:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                supervisor.tend()
                time.sleep(0.02)

        with pytest.raises(UnavailableError, match="broken ends again and again"):
            tend_for_ever()
