"""Ports for the servers that tests start."""

from __future__ import annotations

import fcntl
import itertools
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

_FIRST, _EACH, _PARTS = 12_000, 5_000, 4
"""Below 32768, where Linux begins to take ports for outgoing connections: such a one could take ours before its server
does. Processes of one run have parts of their own."""


def _ports() -> Iterator[int]:
    part = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PARTS
    start = random.SystemRandom().randrange(_EACH)  # another run may be at work on this machine
    for number in itertools.count(start):
        yield _FIRST + part * _EACH + number % _EACH


SHARED = Path("/tmp" if Path("/tmp").is_dir() else tempfile.gettempdir())  # noqa: S108 - whatever TMPDIR each run has
_NEXT = _ports()
_OURS: list[int] = []
"""Descriptors of the files whose locks say that a port is this process's, also while its server is down."""


def free_port() -> int:
    """A port that nobody holds at present, and that no other process of tests was given that still runs."""
    for port in itertools.islice(_NEXT, _EACH):
        if not _claimed(port):
            continue
        with socket.socket() as held:
            try:
                held.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")


def _claimed(port: int) -> bool:
    """Lock the port's file as long as this process runs; False where another one has it."""
    folder = SHARED / f"ballast-test-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = os.open(folder / str(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return False
    _OURS.append(file)
    return True
