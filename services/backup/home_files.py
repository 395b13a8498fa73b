"""Which files of a home folder go into a backup: keys, certificates, secrets, settings; not what is made anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePosixPath
from typing import Final

from services.backup.sealed_stream import MAGIC, is_backup
from services.contracts.errors import ConflictError, UnavailableError

LEFT_FOLDERS: Final = frozenset({"prefect", "logs", "mlflow-artifacts", "mlruns"})
"""Prefect's own database, logs, and what is taken another way."""
LEFT_SUFFIXES: Final = (".db", ".db-wal", ".db-shm", ".db-journal", ".lock", ".pid", ".log")
SCRATCH: Final = ".ballast-backup-"
"""Beginning of the name of what a backup makes while it runs."""


def files_of(home: Path) -> Iterator[tuple[str, Path]]:
    """Files of a home folder that a backup takes, with their names below it, in order."""
    for path in files_below(home, but=LEFT_FOLDERS):
        name = path.relative_to(home)
        top = name.parts[0]
        if top in LEFT_FOLDERS or top.startswith(SCRATCH) or path.name.endswith(LEFT_SUFFIXES):
            continue
        try:
            with path.open("rb") as file:
                if is_backup(file.read(len(MAGIC))):
                    continue  # an earlier backup
        except OSError as error:
            _pass_over_what_is_gone(error)
            continue
        yield name.as_posix(), path


def files_below(folder: Path, but: AbstractSet[str] = frozenset()) -> list[Path]:
    """Files below a folder, in order, but for those in some of its folders. What goes while it is looked for is none.

    :class:`UnavailableError` where a folder cannot be read: what is in it would be missing, and nobody told.
    """
    found = list[Path]()
    for at, folders, names in os.walk(folder, onerror=_pass_over_what_is_gone):
        folders[:] = [each for each in folders if Path(at) != folder or each not in but]
        found += [path for name in names if (path := Path(at, name)).is_file()]
    return sorted(found)


def _pass_over_what_is_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        why = error.strerror or error
        raise UnavailableError(f"there is no backup, for {error.filename} cannot be read: {why}") from error


def below(folder: Path, name: str) -> Path:
    """Where a member of a backup goes below a folder; ``ConflictError`` for a name that leads out of it."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise ConflictError(f"the backup names a file outside of the home folder: {name[:100]}")
    return folder.joinpath(*parts)
