"""Log files of processes that write to them for years: a file that is long is kept beside as ``.1``, and begun anew."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from services.process.private_files import private_opener

MOST_BYTES: Final = 32 * 1024 * 1024
"""Of a file; there are at most twice as many of each process, and what one writes within a moment."""


def shorten(path: Path) -> bool:
    """Begin a long file anew, and keep what it held beside it; whether it was long.

    Its process has it open and goes on writing to its end (``O_APPEND``), so the file itself must stay. What is
    written between the copy and the cut is lost. Where the disk takes no copy the file is cut all the same.
    """
    try:
        if path.stat().st_size <= MOST_BYTES:
            return False
    except OSError:
        return False
    older = path.with_name(f"{path.name}.1")
    try:
        with path.open("rb") as held, open(older, "wb", opener=private_opener) as kept:
            shutil.copyfileobj(held, kept)
    except OSError:
        with suppress(OSError):  # a folder is in its place
            older.unlink(missing_ok=True)
    with suppress(FileNotFoundError):  # somebody took it away meanwhile
        os.truncate(path, 0)
    return True
