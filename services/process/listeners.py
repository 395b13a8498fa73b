"""Whose process listens on a port of this host: which home folder it serves, by the kernel's tables (Linux).

Nothing is asked of the process and nothing sent to it, so it learns no secret and need not be told one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from services.process.settings import HOME_VARIABLE

TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENS: Final = "0A"
"""State of a socket that listens (TCP_LISTEN)."""


def other_home(port: int, home: Path) -> Path | None:
    """Home folder that what listens on a port serves, where that is another than ``home``.

    None where ``home``'s own does, where nobody does, and where it cannot be seen: another user's process, another
    container's, one that was started without a home folder, or no Linux.
    """
    found = set(_homes(port))
    return None if not found or home in found else min(found)


def serves(port: int, home: Path) -> bool:
    """Whether what listens on a port is seen to serve ``home``."""
    return home in set(_homes(port))


def _homes(port: int) -> Iterator[Path]:
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    if not sockets:
        return
    for process in Path("/proc").glob("[0-9]*"):
        try:
            with os.scandir(process / "fd") as files:
                if not any(_target(each.path) in sockets for each in files):
                    continue
            known = (process / "environ").read_bytes().split(b"\0")
            where = (process / "cwd").readlink()
        except OSError:  # it has ended, or is another user's
            continue
        mark = f"{HOME_VARIABLE}=".encode()
        yield from ((where / os.fsdecode(each[len(mark):])).resolve() for each in known if each.startswith(mark))


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile
        return ""


def _listening(port: int) -> Iterator[str]:
    """Numbers of the sockets that listen on a port."""
    for table in TABLES:
        try:
            rows = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]
