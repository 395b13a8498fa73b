"""Room on the disks to which the service writes: home folder, and files of an embedded database and registry."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from services.process.settings import Settings

LEAST_BYTES: Final = 2 * 10**8
"""Below so much the service is not ready: a version with its figures and the log of a day need some tens of MB."""
_TRIED: Final = bytes(4096)  # a block of most file systems
_WRONG: Final = {
    errno.ENOSPC: "is full; make room",
    errno.EDQUOT: "takes no more of the service's account; raise its quota or make room",
    errno.EIO: "failed; look at it (`dmesg`)",
}
"""What a write that fails says of a disk. A folder that may only be read is none of these: nothing may be due there."""


class Room(NamedTuple):
    """A folder, and the room of its disk in bytes."""

    folder: Path
    free: int
    total: int


def written_folders(settings: Settings) -> Iterator[Path]:
    """Folders of this machine to which the service writes, as far as they are there."""
    found = [settings.home]
    files = (sqlite_file(address) for address in (settings.database, settings.tracking_uri))
    found += [file.parent for file in files if file is not None]
    artifacts = urlsplit(settings.artifact_root)
    if artifacts.scheme in ("", "file"):
        found.append(Path(unquote(artifacts.path)))
    yield from (each for each in dict.fromkeys(each.resolve() for each in found) if each.is_dir())


def sqlite_file(address: str) -> Path | None:
    """File of a database; None where a server keeps it."""
    return Path(address.removeprefix("sqlite:///").partition("?")[0]) if address.startswith("sqlite:///") else None


def least_room(settings: Settings) -> Room:
    """The folder with the least room; ``FileNotFoundError`` where there is no home folder."""
    rooms = [Room(each, *_free_and_total(each)) for each in written_folders(settings)]
    return min(rooms, key=lambda each: each.free) if rooms else Room(settings.home, *_free_and_total(settings.home))


def disk_problem(settings: Settings) -> str:
    """Why nothing can be kept, by the room that is left and by a write that is tried; empty where it can.

    It names no folder, for anybody may ask.
    """
    for folder in written_folders(settings):
        try:
            with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
                file.write(_TRIED)
        except OSError as error:
            if error.errno in _WRONG:
                return _WRONG[error.errno]
        free, _ = _free_and_total(folder)
        if free < LEAST_BYTES:
            return f"has {free / 1e6:.0f} MB left, less than {LEAST_BYTES / 1e6:.0f}; make room"
    return ""


def _free_and_total(folder: Path) -> tuple[int, int]:
    found = shutil.disk_usage(folder)
    return found.free, found.total
