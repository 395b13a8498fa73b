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
class Package:
    """A package of Debian with a set's files packed again: its name, where it puts them, the SHA-256 of each file."""

    name: str
    folder: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class PublishedSet:
    """Where a set is published, and the checksum of each of its files: SHA-256, or MD5 where no other is known.

    ``package``: where else the files are had from, the same but for how they are packed.
    """

    base: str
    files: Mapping[str, str]
    package: Package | None = None

    def known(self, file: str) -> dict[str, str]:
        """Checksums that a file may have, each by who gives it out."""
        found = {"its publisher": self.files[file]}
        return found if self.package is None else {**found, f"Debian's {self.package.name}": self.package.files[file]}

    def elsewhere(self, name: str, folder: Path) -> str:
        """The two commands that get the set from Debian into a folder; empty where Debian has it not."""
        if self.package is None:
            return ""
        link = f"ln -s {self.package.folder} {shlex.quote(str(folder / name))}"
        return f"; Debian has the same files: apt-get install {self.package.name} && {link}"


def fetch_files(name: str, source: PublishedSet, folder: Path, *, base: str | None = None) -> Path:
    """Have a set in ``folder/name`` and return that folder; raises :class:`FetchError`.

    What is there already and is a known file stays as it is. The rest is downloaded, and written when all of it is the
    publisher's.
    """
    target, contents = folder / name, dict[str, bytes]()
    for file, known in source.files.items():
        if (target / file).is_file() and _sum((target / file).read_bytes(), known) in source.known(file).values():
            continue
        url = f"{base or source.base}/{file}"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
                contents[file] = answer.read()
        except (urllib.error.URLError, TimeoutError) as error:
            raise FetchError(f"{url} could not be read ({error}){source.elsewhere(name, folder)}") from None
        _check(url, contents[file], {"its publisher": known})
    for file, content in contents.items():
        target.mkdir(parents=True, exist_ok=True)
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
            f"{source.elsewhere(name, data_folder())}"
        )
    content = path.read_bytes()
    _check(str(path), content, source.known(file))
    return content


def _check(what: str, content: bytes, known: Mapping[str, str]) -> None:
    first = next(iter(known.values()))
    found = _sum(content, first)
    if found not in known.values():
        wanted = " or ".join(f"{each} ({who})" for who, each in known.items()) if len(known) > 1 else first
        raise FetchError(f"{what} is not the expected file: its {_kind(first)} is {found}, expected {wanted}")


def _kind(known: str) -> str:
    return "SHA-256" if len(known) == 64 else "MD5"


def _sum(content: bytes, known: str) -> str:
    """Checksum of the same kind as a known one."""
    return hashlib.new(_kind(known).replace("-", ""), content, usedforsecurity=False).hexdigest()
