"""Whether a process of ours runs: it holds a lock on a file, which ends with the process however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from services.process.private_files import private_opener


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock while inside; several processes may hold it at once."""
    with open(path, "a", encoding="ascii", opener=private_opener) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        show_life(path)
        yield


def show_life(path: Path) -> None:
    """Say that the process that holds the lock is at work now: one that hangs holds it, too."""
    with suppress(OSError):
        os.utime(path)


def idle_seconds(path: Path) -> float:
    """Seconds since whoever holds the lock has shown life; 0 where nothing is known, or the clock was put back."""
    with suppress(OSError):
        return max(0.0, time.time() - path.stat().st_mtime)
    return 0.0


def is_held(path: Path) -> bool:
    """Whether any process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
