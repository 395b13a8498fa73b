"""Sets that are kept as the files that their publishers give out: fetched, and read only when the checksum holds."""

from __future__ import annotations

import hashlib
import shlex
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.data import MissingDataError, data_folder

TIMEOUT = 60.0


class FetchError(RuntimeError):
    """A file could not be had, or is not the one that was expected."""


@dataclass(frozen=True)
class PublishedSet:
    """Where a set is published, and the checksum of each of its files: SHA-256, or MD5 where no other is known."""

    base: str
    files: Mapping[str, str]


def fetch_files(name: str, source: PublishedSet, folder: Path, *, base: str | None = None) -> Path:
    """Download a set into ``folder/name`` and check it; return its folder; raises :class:`FetchError`."""
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    for file, known in source.files.items():
        url = f"{base or source.base}/{file}"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
                content = answer.read()
        except (urllib.error.URLError, TimeoutError) as error:
            raise FetchError(f"{url} could not be read ({error})") from None
        _check(url, content, known)
        (target / file).write_bytes(content)
    return target


def checked_file(name: str, source: PublishedSet, file: str) -> bytes:
    """Content of a set's file in ``BALLAST_DATA_DIR``.

    Raises
    ------
    MissingDataError
        The file is not there.
    FetchError
        It is not the expected one.
    """
    path = data_folder() / name / file
    if not path.is_file():
        raise MissingDataError(
            f"there is no {path}; set BALLAST_DATA_DIR to the folder of the tables, "
            f"or get it with: python -m tests.benchmarks.fetch {name} --out {shlex.quote(str(data_folder()))}"
        )
    content = path.read_bytes()
    _check(str(path), content, source.files[file])
    return content


def _check(what: str, content: bytes, known: str) -> None:
    name = "SHA-256" if len(known) == 64 else "MD5"
    found = hashlib.new(name.replace("-", ""), content, usedforsecurity=False).hexdigest()
    if found != known:
        raise FetchError(f"{what} is not the expected file: its {name} is {found}, expected {known}")
