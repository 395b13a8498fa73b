"""One agent at a time for what it writes: a lock beside the file, by the file's real name, until the process ends.

Two settings of one plant, as for two OEMs, may name the same ledger or the same account of answers.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.contracts.errors import BallastError


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
def for_one_agent(path: Path, error: type[BallastError], what: str) -> Iterator[None]:
    """Hold the lock while inside."""
    descriptor = lock_for_one(path, error, what)
    try:
        yield
    finally:
        os.close(descriptor)
