"""The members of a backup: a manifest first, then files and parts of tables, each with a name and its bytes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from services.backup.sealed_stream import SealedReader, SealedWriter
from services.contracts.base import Contract
from services.contracts.errors import ConflictError

MANIFEST: Final = "manifest.json"
HOME: Final = "home/"
STORE: Final = "store/"
REGISTRY: Final = "registry/"
ARTIFACTS: Final = "artifacts/"


class Manifest(Contract):
    """What a backup holds, and what must be so again after it is restored."""

    ballast: str
    created_at: datetime
    schema_revision: str
    audit_events: int
    audit_head: str
    audit_problem: str = ""
    registry_revision: str | None
    """Revision of MLflow's own tables; None where the registry is a server's and not in the backup."""
    artifact_root: str | None
    """Address below which the artifacts were; None where they are not in the backup."""


class Writer:
    """Members, written one after the other."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive

    def add(self, name: str, data: bytes) -> None:
        """Add a member."""
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(data), 0o600
        self._archive.addfile(member, io.BytesIO(data))


@contextmanager
def writing(stream: SealedWriter) -> Iterator[Writer]:
    """Open an archive; where the block fails the stream has no end, and so is no backup."""
    with tarfile.open(fileobj=stream, mode="w|") as archive:  # type: ignore[call-overload]
        yield Writer(archive)
    stream.close()


def members(stream: SealedReader) -> Iterator[tuple[str, bytes]]:
    """Members in their order. Only when all are taken was the end of the stream seen, and all of it authentic.

    :class:`ConflictError` for what is no file, and where the stream does not end as it should.
    """
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                held = archive.extractfile(member) if member.isfile() else None
                if held is None:
                    raise ConflictError(f"the backup holds something that is no file: {member.name[:100]}")
                yield member.name, held.read()
    except tarfile.TarError as error:
        raise ConflictError(f"the backup cannot be read: {error}") from None
    stream.finish()


def read_manifest(name: str, data: bytes) -> Manifest:
    """Manifest from the first member; ``ConflictError`` where it is none."""
    try:
        if name != MANIFEST:
            raise ValueError(name)
        return Manifest.model_validate_json(data)
    except (ValueError, ValidationError):
        raise ConflictError("the backup has no manifest that this version of Ballast can read") from None
