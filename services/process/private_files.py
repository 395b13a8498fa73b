"""Files and folders that nobody but their owner can read, from their first byte on."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from services.contracts.errors import UnavailableError
from services.contracts.keys.once import written_once

UMASK = 0o077
"""Takes every permission from group and others, whatever mode a library asks for."""
FOLDER_MODE = 0o700  # its owner alone
FILE_MODE = 0o600  # its owner alone


def keep_private() -> None:
    """Make all that this process and its children create from now on private."""
    os.umask(UMASK)


def private_folder(path: Path) -> Path:
    """Make a folder (mode 0700) where it is not there; shut one that is there to all but its owner.

    Raises
    ------
    UnavailableError
        When it cannot be made, or belongs to somebody else: its owner could read and change what is put into it.
    """
    try:
        for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
            missing.mkdir(mode=FOLDER_MODE, exist_ok=True)
        if path.stat().st_uid != os.geteuid():
            raise UnavailableError(f"the folder {path} belongs to another user; give it to this one, or name another")
        if path.stat().st_mode & UMASK:
            path.chmod(FOLDER_MODE)
    except OSError as error:
        raise UnavailableError(f"the folder {path} cannot be made private: {error.strerror}") from error
    return path


def private_file(path: Path) -> Path:
    """Make an empty file (mode 0600) where it is not there, for a library that would make it readable to others.

    :class:`UnavailableError` where it cannot be made.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, FILE_MODE))
    except OSError as error:
        raise UnavailableError(f"the file {path} cannot be made: {error.strerror}") from error
    return path


def private_opener(path: str, flags: int) -> int:
    """``opener`` of :func:`open`: what is created has the mode 0600."""
    return os.open(path, flags, FILE_MODE)


def made_once(path: Path, make: Callable[[], str]) -> bool:
    """Write what ``make`` gives to a file (mode 0600) unless it is there; whether this call has made it.

    Whole or not at all; of several processes at once, the first has made it and the others read the same.
    """
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    return written_once(path, make().encode("ascii"))


def write_whole(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all; what stood there stays where it fails. A device or a pipe is written into.

    ``private``: mode 0600, where it is not there yet or where it is. Raise ``OSError`` as :func:`open` does.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    scratch = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with open(scratch, "xb", opener=private_opener if private else None) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
