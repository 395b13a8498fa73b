"""Where tests write: a folder in memory where there is room for it, for on a disk it takes them twice as long.

Databases, keys and models of tests are thrown away, some gigabytes of them in a hundred thousand files. Who wants to
look at them afterwards, or to whom memory is dear, names a folder: ``TMPDIR=/tmp make test``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

MEMORY = Path("/dev/shm")
PREFIX = "ballast-tests-"
ROOM = 6 * 2**30
"""Bytes that must be free there; tests take a third of it."""
LIMITS = ("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")
"""Files of a control group, of either version, that say how much memory a container may have, and has."""


def write_in_memory(memory: Path = MEMORY, groups: Path = Path("/sys/fs/cgroup")) -> Path | None:
    """Make a folder in memory that all temporary files go to, those of child processes too.

    None where there is no room, or a folder is named. What earlier tests left there that were killed is removed.
    """
    if "TMPDIR" in os.environ or not has_room(memory, groups):
        return None
    for left in memory.glob(f"{PREFIX}*"):
        if not Path(f"/proc/{left.name.removeprefix(PREFIX)}").exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = memory / f"{PREFIX}{os.getpid()}"
    folder.mkdir(mode=0o755, exist_ok=True)  # PostgreSQL, where we are root, is another user
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    return folder


def forget(folder: Path) -> None:
    """Remove what :func:`write_in_memory` made."""
    shutil.rmtree(folder, ignore_errors=True)
    os.environ.pop("TMPDIR", None)
    tempfile.tempdir = None


def has_room(memory: Path, groups: Path) -> bool:
    """Whether programs in this folder may be run, and memory and its share for us have room."""
    with suppress(OSError, ValueError):
        found = os.statvfs(memory)
        free = [found.f_bavail * found.f_frsize, _available()]
        for limit, used in LIMITS:
            with suppress(OSError, ValueError):  # there is no such group, or its limit is "max"
                free.append(int((groups / limit).read_text()) - int((groups / used).read_text()))
        return not found.f_flag & os.ST_NOEXEC and min(free) >= ROOM
    return False


def _available() -> int:
    """Bytes of memory that programs may still take, as Linux counts them."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
