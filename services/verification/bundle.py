"""What is handed out of a version so that anyone can check it: three files, in a folder or in one zip file."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from services.contracts.array_files import UNREADABLE
from services.contracts.errors import InvalidInputError
from services.contracts.keys.key_chain import FILE as LINE
from services.contracts.keys.key_chain import KeyStatement, read_statements, write_statements
from services.verification.version import CERTIFICATE

DOCUMENT = "model.json"
_MOST_BYTES = 64 * 1024 * 1024
"""Of a file in a zip: a hundred times the largest honest one."""


@dataclass(frozen=True)
class VersionFiles:
    """A version's document, its certificate file (None: not there), and the line of the OEM's keys."""

    document: dict[str, Any]
    certificate: bytes | None
    line: tuple[KeyStatement, ...] = ()

    def parts(self) -> dict[str, bytes]:
        """Bytes by file name."""
        text = json.dumps(self.document, indent=1, allow_nan=False) + "\n"
        found = {DOCUMENT: text.encode(), LINE: write_statements(self.line).encode()}
        return found if self.certificate is None else found | {CERTIFICATE: self.certificate}


def packed(files: VersionFiles) -> bytes:
    """The files as one zip file; the same files give the same bytes."""
    stored = io.BytesIO()
    with ZipFile(stored, "w", ZIP_STORED) as archive:
        for name, data in sorted(files.parts().items()):
            archive.writestr(ZipInfo(name), data)
    return stored.getvalue()


def saved(files: VersionFiles, folder: Path) -> None:
    """Write the files into a folder, which is made; ``InvalidInputError`` where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.parts().items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise InvalidInputError(f"cannot write to {folder}: {error.strerror}") from None


def read_files(path: Path, certificate: Path | None = None) -> VersionFiles:
    """Files of a version: a zip file, a folder, or a document with the others beside it.

    ``certificate``: the certificate file, where it has another name.

    Raises
    ------
    InvalidInputError
        A file cannot be read, or is not what its name says.
    """
    parts = _of_zip(path) if path.suffix == ".zip" else _of_folder(path)
    if certificate is not None:
        parts[CERTIFICATE] = _read(certificate)
    if parts[DOCUMENT] is None:
        raise InvalidInputError(f"{path} holds no {DOCUMENT}: give the file, folder or zip file that the OEM gave")
    try:
        document = json.loads(parts[DOCUMENT])
    except (ValueError, RecursionError):
        raise InvalidInputError(f"{_document_in(path)} is not JSON, so it is no version") from None
    if not isinstance(document, dict):
        raise InvalidInputError(f"{_document_in(path)} is not a version: a JSON object is needed")
    line = parts[LINE]
    return VersionFiles(document, parts[CERTIFICATE], () if line is None else read_statements(line))


def _document_in(path: Path) -> str:
    """What is called a version's document: the file itself, or the one in a folder or a zip file."""
    return f"{DOCUMENT} in {path}" if path.is_dir() or path.suffix == ".zip" else str(path)


def _of_folder(path: Path) -> dict[str, Any]:
    try:  # Python raises where a folder lets nobody look into it, or a name is too long
        document = path / DOCUMENT if path.is_dir() else path
        beside = {name: document.with_name(name) for name in (CERTIFICATE, LINE)}
        there = {name: file for name, file in beside.items() if file.exists()}
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    found: dict[str, bytes | None] = {name: _read(there[name]) if name in there else None for name in beside}
    return {DOCUMENT: _read(document), **found}


def _of_zip(path: Path) -> dict[str, Any]:
    try:
        with ZipFile(io.BytesIO(_read(path))) as archive:
            names = set(archive.namelist())
            if any(archive.getinfo(name).file_size > _MOST_BYTES for name in names):
                raise InvalidInputError(f"{path} holds a file above {_MOST_BYTES} bytes; no version has one")
            return {name: archive.read(name) if name in names else None for name in (DOCUMENT, CERTIFICATE, LINE)}
    except UNREADABLE:
        raise InvalidInputError(f"{path} is not a zip file of a version's files") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
