"""What tells one state of a file from the next, for those who read it anew only where it has changed."""

from __future__ import annotations

from pathlib import Path


def file_stamp(path: Path) -> tuple[int, int, int] | None:
    """Which file it is, when it was written last, and its size; None where none is there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
