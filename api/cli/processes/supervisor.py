"""Starts the OEM's processes, keeps them running, and stops them together."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from api.cli.processes.log_files import shorten
from services.contracts.errors import UnavailableError
from services.process.command_line import FULL
from services.process.end_with_parent import end_with_parent
from services.process.private_files import UMASK, private_folder, private_opener

STOP_SECONDS = 10.0  # a server that takes longer to stop is killed
POLL_SECONDS = 0.2  # between two looks at a child that starts
SHORTEST_LIFE_SECONDS = 5.0
"""A child that dies sooner never worked."""
MOST_RESTARTS = 5  # short lives in a row: the cause is not a passing one
REST_SECONDS = 10.0  # of a child that the others do without, before it is tried again; as systemd does for a plant
NO_ROOM = FULL | {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
"""Errors of a host that has no process, memory, file or disk left: in a moment it may have some."""
ERROR_LINE = re.compile(r"[A-Za-z_][\w.]*(Error|Exception)(:|$)")
"""The line of a traceback that names the error; servers go on to say that they could not start."""


@dataclass(frozen=True)
class Child:
    """A process to keep: its command, its environment on top of ours, and how one sees that it is ready.

    One that ends within ``shortest_life`` seconds never worked. Not ``vital``: the others go on without it where it
    ends so again and again.
    """

    name: str
    command: Sequence[str]
    ready: Callable[[], bool]
    ready_seconds: float = 90.0
    environment: Mapping[str, str] = field(default_factory=dict)
    vital: bool = True
    shortest_life: float = SHORTEST_LIFE_SECONDS


@dataclass
class _Running:
    child: Child
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    log_start: int
    started: float
    short_lives: int = 0
    ended: float | None = None
    waits: bool = False


class Supervisor:
    """Children in a group of their own each, with a log file each; a child that dies is started again.

    Use as a context manager: whatever happens inside, all children are stopped at the end. A supervisor that is killed
    takes its children along (Linux). What a dead child had started ends before it is started again: a server's worker
    would hold its port, a flow's process would drive a run that its next flows process drives too.
    """

    def __init__(self, log_folder: Path, say: Callable[[str], None]) -> None:
        self._log_folder = log_folder
        self._say = say
        self._running: dict[str, _Running] = {}

    def __enter__(self) -> Supervisor:
        private_folder(self._log_folder)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, child: Child) -> None:
        """Start a child; :meth:`wait_ready` waits for it. A log folder that somebody took away is made anew."""
        private_folder(self._log_folder)
        log = open(self._log_folder / f"{child.name}.log", "ab", opener=private_opener)
        log_start = log.tell()
        try:
            process = subprocess.Popen(
                list(child.command), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, **child.environment}, start_new_session=True, umask=UMASK,
                preexec_fn=end_with_parent,
            )
        except OSError:
            log.close()
            raise
        earlier = self._running.get(child.name)
        self._running[child.name] = _Running(
            child, process, log, log_start, time.monotonic(), earlier.short_lives if earlier else 0
        )

    def wait_ready(self, name: str) -> None:
        """Wait until a child is ready; raise :class:`UnavailableError` when it ends or takes too long."""
        running = self._running[name]
        deadline = time.monotonic() + running.child.ready_seconds
        while time.monotonic() < deadline:
            if running.process.poll() is not None:
                raise UnavailableError(
                    f"{name} ended with exit code {running.process.returncode} before it was ready: {self._tail(name)}"
                )
            if running.child.ready():
                return
            time.sleep(POLL_SECONDS)
        raise UnavailableError(f"{name} was not ready in {running.child.ready_seconds:.0f} s: {self._tail(name)}")

    def tend(self) -> None:
        """Start again what has died, and begin long logs anew. Where the host has no room for a process, it waits.

        :class:`UnavailableError` for a vital child that will not live.
        """
        for running in list(self._running.values()):
            if shorten(self._log_folder / f"{running.child.name}.log"):
                running.log_start = 0
            code = running.process.poll()
            if code is None:
                continue
            if running.ended is None:
                self._note_end(running, code)
            if running.short_lives >= MOST_RESTARTS and time.monotonic() - (running.ended or 0.0) < REST_SECONDS:
                continue
            if not running.log.closed:
                _signal(running.process, signal.SIGKILL)
                running.log.close()
            try:
                self.start(running.child)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                if not running.waits:
                    self._say(f"{running.child.name} cannot be started now ({error.strerror}); it is tried again")
                running.waits = True

    def _note_end(self, running: _Running, code: int) -> None:
        """Count a short life, and say what follows from it; once of a child that is tried again for ever."""
        name, running.ended = running.child.name, time.monotonic()
        short = running.ended - running.started < running.child.shortest_life
        running.short_lives = running.short_lives + 1 if short else 0
        if running.short_lives < MOST_RESTARTS:
            self._say(f"{name} ended (exit code {code}); starting it again")
            return
        ends = f"{name} ends again and again (exit code {code}): {self._tail(name)}"
        if running.child.vital:
            raise UnavailableError(ends)
        if running.short_lives == MOST_RESTARTS:
            self._say(f"{ends}; the others go on, and it is tried every {REST_SECONDS:.0f} s")

    @property
    def names(self) -> frozenset[str]:
        """Names of the children."""
        return frozenset(self._running)

    def stop(self) -> None:
        """End every child, the last started first: politely, then not."""
        for running in reversed(self._running.values()):
            _signal(running.process, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for running in reversed(self._running.values()):
            try:
                running.process.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            _signal(running.process, signal.SIGKILL)
            running.process.wait()
            running.log.close()
        self._running.clear()

    def _tail(self, name: str) -> str:
        """The last words of this life of a child: its last error, where it named one, and its last line."""
        path = self._log_folder / f"{name}.log"
        try:
            said = path.read_bytes()[self._running[name].log_start :].decode(errors="replace")
        except OSError as error:
            return f"its log {path} cannot be read: {error.strerror}"
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        if not lines:
            return f"it said nothing (see {path})"
        cause = next((line for line in reversed(lines) if ERROR_LINE.match(line)), lines[-1])
        return f"{cause if cause == lines[-1] else f'{cause}; {lines[-1]}'} (see {path})"


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal the child's whole group, which outlives its leader when the leader leaves children behind."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass
