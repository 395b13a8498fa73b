"""Has the running server read its configuration anew, and sees by its log whether it took it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

from services.bus.configuration import BusFiles
from services.contracts.errors import UnavailableError

STARTED: Final = "Starting nats-server"
TAKEN: Final = "Reloaded server configuration"
REFUSED: Final = "Failed to reload server configuration: "
PATIENCE_SECONDS = 10.0  # a reload takes milliseconds
LOOK_SECONDS = 0.01  # a server has read its file within some milliseconds
TAIL_BYTES: Final = 1 << 18
"""Bytes of the log in which the last reload is looked for."""


def running_pid(files: BusFiles) -> int | None:
    """Process id of the running embedded server, or None."""
    try:
        pid = int(files.pid.read_text())
        if pid <= 0 or not _may_be_told(pid):  # what is no number of a process means whole groups of them
            return None  # the number was given to another user's program since
        program, state = Path(f"/proc/{pid}/comm"), Path(f"/proc/{pid}/stat")
        if program.exists() and program.read_text().strip() != "nats-server":
            return None  # the number was given to another program since
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            return None  # it ended, and its parent has not looked yet
    except (FileNotFoundError, ValueError, OverflowError, ProcessLookupError):
        return None
    return pid


def _may_be_told(pid: int) -> bool:
    """Whether a process is one that this user may send signals to; ``ProcessLookupError`` where there is none."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return False
    return True


def reload(files: BusFiles) -> None:
    """Have a running server read its configuration, and wait until it says that it took it.

    A server without a log file, as one of a cluster, is told and not waited for. One that ends meanwhile reads the
    configuration when it starts again.

    Raises
    ------
    UnavailableError
        The server refuses the configuration, or does not say anything: who was let in before still is.
    """
    pid = running_pid(files)
    if pid is None:
        return
    begin = files.log.stat().st_size if files.log.exists() else None
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + PATIENCE_SECONDS
    while begin is not None and running_pid(files) == pid:
        said = _read(files.log, begin)
        if REFUSED in said:
            raise UnavailableError(f"the NATS server did not take its users: {_last(said)}")
        if TAKEN in said:
            return
        if time.monotonic() >= deadline:
            raise UnavailableError(
                f"the NATS server (process {pid}) did not say within {PATIENCE_SECONDS:g} s that it took its users"
            )
        time.sleep(LOOK_SECONDS)


def refused_reload(files: BusFiles) -> str:
    """Why the server did not take its configuration the last time that it was to read it; empty where it did."""
    if not files.log.exists():
        return ""
    said = _read(files.log, max(0, files.log.stat().st_size - TAIL_BYTES))
    return _last(said) if said.rfind(REFUSED) > max(said.rfind(TAKEN), said.rfind(STARTED)) else ""


def _read(log: Path, begin: int) -> str:
    """What stands in a log from a place on; all of it where it was cut to less, nothing where it was moved away."""
    try:
        with log.open("rb") as file:
            file.seek(begin if log.stat().st_size >= begin else 0)
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _last(said: str) -> str:
    """Reason of the last refusal."""
    return said.rpartition(REFUSED)[2].partition("\n")[0].strip()
