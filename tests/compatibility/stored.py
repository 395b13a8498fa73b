"""What version 0.1.0 stored, unpacked where a test wants it."""

from __future__ import annotations

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

STORED = Path(__file__).with_name("stored-0.1.0.tar.xz")
WRITTEN_IN = "/srv/ballast"


def unpack(folder: Path) -> None:
    """Write the files into a folder, and have the registry's paths begin with it.

    Python before 3.11.4 knows no filter, and the archive is our own.
    """
    with tarfile.open(STORED) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    with closing(sqlite3.connect(folder / "mlflow.db")) as registry:
        for (table,) in registry.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for column in [row[1] for row in registry.execute(f'PRAGMA table_info("{table}")')]:
                registry.execute(
                    f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?) WHERE "{column}" LIKE ?',
                    (WRITTEN_IN, str(folder), f"%{WRITTEN_IN}%"),
                )
        registry.commit()
