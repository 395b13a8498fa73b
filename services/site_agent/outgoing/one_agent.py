"""One agent at a time for what it writes: a lock beside the file, by the file's real name, until the process ends.

Two settings of one plant, as for two OEMs, may name the same ledger, the same account of answers or the same log.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.contracts.errors import BallastError, UnavailableError


def lock_for_one(path: Path, error: type[BallastError], what: str) -> int:
    """Descriptor of the lock; ``error`` where another agent holds it, or it cannot be opened.

    Two names of one file, as by a link, have one lock. ``what``: the file, as the error names it.
    """
    real = Path(os.path.realpath(path))
    lock_path = real.with_name(f"{real.name}.lock")
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as failure:
        raise error(f"{what}'s lock {lock_path} cannot be opened: {failure.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise error(f"another agent of this site is running: it holds {lock_path}", code="conflict") from None
    return descriptor


@contextmanager
def log_for_one(path: Path) -> Iterator[None]:
    """Hold the lock of a log while inside, and with it that of the note beside it, which says who is connected.

    Two agents would put each other's lines aside, and each be told well by the other's note. What is no file has none.
    """
    if path.exists() and not path.is_file():
        yield
        return
    with for_one_agent(path, UnavailableError, "the log"):
        yield


@contextmanager
def for_one_agent(path: Path, error: type[BallastError], what: str) -> Iterator[None]:
    """Hold the lock while inside."""
    descriptor = lock_for_one(path, error, what)
    try:
        yield
    finally:
        os.close(descriptor)
