"""What version 0.1.0 stored, unpacked where a test wants it."""

from __future__ import annotations

import tarfile
from pathlib import Path

STORED = Path(__file__).with_name("stored-0.1.0.tar.xz")


def unpack(folder: Path) -> None:
    """Write the files into a folder. Python before 3.11.4 knows no filter, and the archive is our own."""
    with tarfile.open(STORED) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
