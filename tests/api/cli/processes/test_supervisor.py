"""Children are kept running, and none outlives the supervisor."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import BufferedWriter
from pathlib import Path
from typing import Any

import pytest

from api.cli.demonstration.demo_plants import agent
from api.cli.processes import supervisor as supervising
from api.cli.processes.supervisor import MOST_RESTARTS, SHORTEST_LIFE_SECONDS, Child, Supervisor
from services.contracts.errors import UnavailableError
from services.site_agent.connection.link_errors import KEY_GRACE_SECONDS
from tests.waiting import wait_until

SLEEP = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(60)"]


def process_id(supervisor: Supervisor) -> int:
    return supervisor._running["sleeper"].process.pid


def alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def is_zombie(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().split()[2] == "Z"
    except FileNotFoundError:
        return False


def said(log: Path, text: str) -> Callable[[], bool]:
    return lambda: log.exists() and text in log.read_text()


def test_a_child_that_dies_is_started_again(tmp_path: Path) -> None:
    told: list[str] = []
    with Supervisor(tmp_path, told.append) as supervisor:
        supervisor.start(Child("sleeper", SLEEP, said(tmp_path / "sleeper.log", "awake")))
        supervisor.wait_ready("sleeper")
        first = process_id(supervisor)
        os.kill(first, signal.SIGKILL)

        def another() -> bool:
            supervisor.tend()
            return process_id(supervisor) != first

        wait_until(another, "second sleeper")
        second = process_id(supervisor)
        assert alive(second)
    assert not alive(second)
    assert told == ["sleeper ended (exit code -9); starting it again"]


def test_a_log_folder_that_somebody_took_away_ends_nothing(tmp_path: Path) -> None:
    folder, told = tmp_path / "logs", list[str]()
    with Supervisor(folder, told.append) as supervisor:
        supervisor.start(Child("sleeper", SLEEP, said(folder / "sleeper.log", "awake")))
        supervisor.wait_ready("sleeper")
        first = process_id(supervisor)
        shutil.rmtree(folder)
        with pytest.raises(UnavailableError, match=r"in 0 s: its log .*sleeper.log cannot be read: No such file"):
            supervisor._running["sleeper"].child = Child("sleeper", SLEEP, lambda: False, 0.0)
            supervisor.wait_ready("sleeper")
        os.kill(first, signal.SIGKILL)

        def another() -> bool:
            supervisor.tend()
            return process_id(supervisor) != first

        wait_until(another, "second sleeper")
        wait_until(said(folder / "sleeper.log", "awake"), "its log")
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_host_without_room_for_a_process_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told once, and the child is started when there is room; another trouble is no passing one."""
    told, made, killed = list[str](), list[object](), list[int]()
    real, troubles = subprocess.Popen, [errno.EAGAIN, errno.ENOMEM, errno.ENOENT]
    with Supervisor(tmp_path, told.append) as supervisor:
        supervisor.start(Child("sleeper", SLEEP, lambda: True))
        first = supervisor._running["sleeper"].process
        first.kill()
        first.wait()

        def popen(*given: Any, **more: Any) -> Any:
            made.append(more["stdout"])
            if troubles:
                raise OSError(troubles.pop(0), "no room")
            return real(*given, **more)

        monkeypatch.setattr(subprocess, "Popen", popen)
        monkeypatch.setattr(os, "killpg", lambda group, _: killed.append(group))
        supervisor.tend()
        supervisor.tend()
        assert killed == [first.pid], "once: its number may be another's by then"
        assert told[1:] == ["sleeper cannot be started now (no room); it is tried again"]
        with pytest.raises(FileNotFoundError):
            supervisor.tend()
        assert all(log.closed for log in made if isinstance(log, BufferedWriter))
        monkeypatch.undo()
        supervisor.tend()
        assert alive(process_id(supervisor)) and process_id(supervisor) != first.pid


def test_a_child_that_does_not_end_when_it_is_told_to_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "STOP_SECONDS", 0.2)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('awake', flush=True); "
    with Supervisor(tmp_path, print) as supervisor:
        command = [sys.executable, "-c", f"{deaf}time.sleep(60)"]
        supervisor.start(Child("sleeper", command, said(tmp_path / "sleeper.log", "awake")))
        supervisor.wait_ready("sleeper")
        child = process_id(supervisor)
    assert not alive(child), "nor is it left for another to bury"


def test_one_that_ends_well_before_it_is_ready_is_not_waited_for(tmp_path: Path) -> None:
    with Supervisor(tmp_path, print) as supervisor:
        supervisor.start(Child("done", [sys.executable, "-c", "print('nothing to do')"], lambda: False, 30.0))
        with pytest.raises(UnavailableError, match="exit code 0 before it was ready: nothing to do"):
            supervisor.wait_ready("done")


def test_grandchildren_are_stopped_too(tmp_path: Path) -> None:
    script = f"import subprocess, sys; print(subprocess.Popen({SLEEP!r}).pid, flush=True); import time; time.sleep(60)"
    log = tmp_path / "parent.log"
    with Supervisor(tmp_path, print) as supervisor:
        supervisor.start(Child("parent", [sys.executable, "-c", script], said(log, "awake")))
        supervisor.wait_ready("parent")
        grandchild = int(log.read_text().split()[0])
        assert alive(grandchild)
    wait_until(lambda: not alive(grandchild) or is_zombie(grandchild), "end of the grandchild")


def test_a_child_that_cannot_start_is_told_with_its_last_line(tmp_path: Path) -> None:
    script = "import sys; sys.exit('no room on this ship')"
    with Supervisor(tmp_path, print) as supervisor:
        supervisor.start(Child("broken", [sys.executable, "-c", script], lambda: False))
        with pytest.raises(UnavailableError, match="exit code 1 before it was ready: no room on this ship"):
            supervisor.wait_ready("broken")


def test_the_last_words_name_the_error_of_this_life_and_not_only_that_there_was_one(tmp_path: Path) -> None:
    (tmp_path / "broken.log").write_text("OldError: of a life before\n")
    script = (
        "import sys, traceback\n"
        "try:\n    import no_such_module\nexcept ImportError:\n    traceback.print_exc()\n"
        "sys.exit('ERROR:    Application startup failed. Exiting.')"
    )
    with Supervisor(tmp_path, print) as supervisor:
        supervisor.start(Child("broken", [sys.executable, "-c", script], lambda: False))
        with pytest.raises(UnavailableError) as failure:
            supervisor.wait_ready("broken")
    assert "ready: ModuleNotFoundError: No module named 'no_such_module'; ERROR:    Application" in str(failure.value)
    assert "OldError" not in str(failure.value) and "\n" not in str(failure.value)


def test_a_child_that_ends_again_and_again_is_given_up(tmp_path: Path) -> None:
    with Supervisor(tmp_path, lambda _: None) as supervisor:
        supervisor.start(Child("broken", [sys.executable, "-c", "raise SystemExit(3)"], lambda: True))
        with pytest.raises(UnavailableError, match="broken ends again and again"):

            def never() -> bool:
                supervisor.tend()
                return False

            wait_until(never, "end of the supervisor's patience")


def test_the_others_go_on_without_a_plant_that_left_and_it_is_back_once_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "REST_SECONDS", 0.05)
    log, told = tmp_path / "plant.log", list[str]()
    wanted = f"import pathlib, sys\nif not pathlib.Path({str(tmp_path / 'may')!r}).exists():\n    sys.exit('left')\n"
    with Supervisor(tmp_path, told.append) as supervisor:
        supervisor.start(Child("plant", [sys.executable, "-c", wanted + SLEEP[-1]], lambda: True, vital=False))

        def tried(often: int) -> Callable[[], bool]:
            def look() -> bool:
                supervisor.tend()
                return log.read_text().count("left") >= often

            return look

        wait_until(tried(MOST_RESTARTS + 2), "tries after it was given up")
        assert len(told) == MOST_RESTARTS and "plant ends again and again (exit code 1): left" in told[-1]
        (tmp_path / "may").touch()

        def back() -> bool:
            supervisor.tend()
            return "awake" in log.read_text()

        wait_until(back, "plant that is back")
        monkeypatch.setattr(supervising, "REST_SECONDS", 3600.0)
        supervisor._running["plant"].short_lives = MOST_RESTARTS
        supervisor._running["plant"].started = time.monotonic()
        supervisor._running["plant"].process.kill()
        ended = supervisor._running["plant"].process
        ended.wait()
        supervisor.tend()
        supervisor.tend()
        assert supervisor._running["plant"].process is ended, "it rests before it is tried again"


@pytest.mark.parametrize(("short_lives", "rests"), [(MOST_RESTARTS - 2, False), (MOST_RESTARTS - 1, True)])
def test_it_rests_from_the_last_of_its_short_lives_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_lives: int, rests: bool
) -> None:
    """When it is told that it is tried every so many seconds."""
    monkeypatch.setattr(supervising, "REST_SECONDS", 3600.0)
    told: list[str] = []
    with Supervisor(tmp_path, told.append) as supervisor:
        supervisor.start(Child("plant", [sys.executable, "-c", ""], lambda: True, vital=False, shortest_life=3600.0))
        running = supervisor._running["plant"]
        running.short_lives = short_lives
        running.process.wait()
        supervisor.tend()
        assert (supervisor._running["plant"] is running) is rests
        assert ("it is tried every 3600 s" in told[-1]) is rests


def test_a_demo_does_not_end_with_a_plant_that_left() -> None:
    plant = agent("plant-7", ["ballast-site", "run"])
    assert not plant.vital and plant.shortest_life > 2 * (SHORTEST_LIFE_SECONDS + KEY_GRACE_SECONDS)


def test_a_life_is_short_by_the_measure_of_the_child(tmp_path: Path) -> None:
    ends = [sys.executable, "-c", ""]
    with Supervisor(tmp_path, lambda _: None) as supervisor:
        for name, shortest in (("slow", 100.0), ("quick", 5.0)):
            supervisor.start(Child(name, ends, lambda: True, vital=False, shortest_life=shortest))
        for running in supervisor._running.values():
            running.process.wait()
            running.started -= 50.0
        supervisor.tend()
        assert {name: running.short_lives for name, running in supervisor._running.items()} == {"slow": 1, "quick": 0}
