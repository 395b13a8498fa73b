"""Which files of a home folder go into a backup: keys, certificates, secrets, settings; not what is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from services.backup.sealed_stream import MAGIC, is_backup
from services.contracts.errors import ConflictError

LEFT_FOLDERS: Final = frozenset({"prefect", "logs", "mlflow-artifacts", "mlruns"})
"""Prefect's own database, logs, and what is taken another way."""
LEFT_SUFFIXES: Final = (".db", ".db-wal", ".db-shm", ".db-journal", ".lock", ".pid", ".log")
SCRATCH: Final = ".ballast-backup-"
"""Beginning of the name of what a backup makes while it runs."""


def files_of(home: Path) -> Iterator[tuple[str, Path]]:
    """Files of a home folder that a backup takes, with their names below it, in order."""
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home)
        top = name.parts[0]
        if not path.is_file() or top in LEFT_FOLDERS or top.startswith(SCRATCH) or path.name.endswith(LEFT_SUFFIXES):
            continue
        with path.open("rb") as file:
            if is_backup(file.read(len(MAGIC))):
                continue  # an earlier backup
        yield name.as_posix(), path


def below(folder: Path, name: str) -> Path:
    """Where a member of a backup goes below a folder; ``ConflictError`` for a name that leads out of it."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise ConflictError(f"the backup names a file outside of the home folder: {name[:100]}")
    return folder.joinpath(*parts)
