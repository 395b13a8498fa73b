"""What each fault does, and how it is taken back."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from services.contracts.errors import BallastError
from tests.chaos.processes import command_line, descendants, fill_disk, send
from tests.chaos.schedule import Fault

if TYPE_CHECKING:
    from tests.chaos.works import Works

PRESENT_SECONDS = 40.0
"""So long a target that is not there is waited for."""
ALONE_SECONDS = 90.0
"""So long a process may live on alone: one that is just being started notices when it has been."""


def strike(works: Works, fault: Fault) -> str:
    """Let a fault befall the works and hold; what came of it, on a few words."""
    table: dict[str, Callable[[Works, Fault], str]] = {
        "kill": kill, "stop": stop, "kill everything": kill_everything, "disk full": disk_full,
        "store locked": store_locked, "false tasks": false_tasks, "false answers": false_answers, "cancel": cancel,
    }
    return table[fault.kind](works, fault)


def kill(works: Works, fault: Fault) -> str:
    """SIGKILL, without a word before."""
    pid = _present(works, fault.target)
    if pid is None or not send(pid, signal.SIGKILL):
        return "nobody there"
    return "killed"


def stop(works: Works, fault: Fault) -> str:
    """SIGSTOP, and SIGCONT when it has been held up long enough; a server with all its processes."""
    pid = _present(works, fault.target)
    held = descendants(pid) if pid is not None and fault.target == "postgresql" else {pid} if pid is not None else set()
    stopped = [each for each in held if send(each, signal.SIGSTOP)]
    _wait(works, fault.hold)
    for each in stopped:
        send(each, signal.SIGCONT)
    return f"held up {fault.hold:.1f} s" if stopped else "nobody there"


def kill_everything(works: Works, fault: Fault) -> str:
    """SIGKILL to ``ballast up`` itself, and another start of it once its children have ended by themselves."""
    assert works.up is not None
    children = descendants(works.up.pid) - {works.up.pid}
    works.kill_office()
    deadline = time.monotonic() + ALONE_SECONDS
    while (left := [pid for pid in children if command_line(pid)]) and time.monotonic() < deadline:
        time.sleep(0.2)
    if left:
        lines = "; ".join(command_line(pid).replace(b"\0", b" ").decode()[-60:] for pid in left)
        works.broken.append(f"orphans: ballast up was killed and left {len(left)} processes behind: {lines}")
        for pid in left:
            send(pid, signal.SIGKILL)
        time.sleep(1.0)
    works.start_office()
    return "killed and started again"


def disk_full(works: Works, fault: Fault) -> str:
    """Nothing that the process writes to a file arrives (``EFBIG``), for a while."""
    pid = _present(works, fault.target)
    struck = descendants(pid) if pid is not None else set()
    full = [each for each in struck if fill_disk(each, True)]
    _wait(works, fault.hold)
    for each in full:
        fill_disk(each, False)
    return f"full {fault.hold:.1f} s" if full else "nobody there"


def store_locked(works: Works, fault: Fault) -> str:
    """Somebody else holds the whole store locked, for a while."""
    if works.database == "sqlite":
        path = Path(works.settings.database.removeprefix("sqlite:///"))
        connection = sqlite3.connect(path, isolation_level=None, timeout=20)
        try:
            connection.execute("BEGIN EXCLUSIVE")
            _wait(works, fault.hold)
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return "somebody else had it"
        finally:
            connection.close()
        return f"locked {fault.hold:.1f} s"
    import psycopg

    try:
        with psycopg.connect(works.settings.database, connect_timeout=5) as held:
            held.execute("SET lock_timeout = '5s'")
            held.execute("LOCK TABLE runs, rounds, audit_head IN ACCESS EXCLUSIVE MODE")
            _wait(works, fault.hold)
            held.rollback()
    except psycopg.Error:
        return "somebody else had it"
    return f"locked {fault.hold:.1f} s"


def false_tasks(works: Works, fault: Fault) -> str:
    """A plant hears what is no task."""
    works.ear.false_tasks(fault.target)
    return "told"


def false_answers(works: Works, fault: Fault) -> str:
    """Somebody answers in a plant's place with what cannot be believed, often before the plant does."""
    works.ear.false_answers(fault.target, works.seed_of(fault.target), fault.hold)
    _wait(works, fault.hold)
    return f"told {fault.hold:.1f} s"


def cancel(works: Works, fault: Fault) -> str:
    """An operator cancels what is on its way."""
    with suppress(BallastError):
        for run in works.store.runs.unfinished_runs():
            works.client.cancel(run.run_id, "chaos")
            return "ordered"
    return "nothing to cancel"


def _present(works: Works, target: str) -> int | None:
    """The target's process; one that is being started is waited for, a flow run until it asks the plants."""
    deadline = time.monotonic() + PRESENT_SECONDS
    while time.monotonic() < deadline:
        pid = works.pid_of(target)
        if pid is not None and (target != "flow run" or works.is_training()):
            return pid
        _wait(works, 0.2)
    return works.pid_of(target)


def _wait(works: Works, seconds: float) -> None:
    """Let time pass while those who tend the plants go on with it."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        threading.Event().wait(min(left, 0.2))
        with suppress(OSError):
            works.tend()
