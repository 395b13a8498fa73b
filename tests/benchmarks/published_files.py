"""Sets that are kept as the files that their publishers give out: fetched, and read only when the checksum holds."""

from __future__ import annotations

import gzip
import hashlib
import shlex
import urllib.error
import urllib.request
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.data import MissingDataError, data_folder

TIMEOUT = 60.0


class FetchError(RuntimeError):
    """A file could not be had, or is not the one that was expected."""


@dataclass(frozen=True)
class Package:
    """A package that has a set too, packed again: whose it is, and the commands that put its files into a folder.

    ``commands`` has the folder as ``{folder}``; ``holds`` is the SHA-256 of what each gzipped file of the publisher's
    holds; or ``instead`` are files of its own that hold what the publisher's do, with their SHA-256.
    """

    name: str
    commands: str
    holds: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedSet:
    """Where a set is published, and the checksum of each of its files: SHA-256, or MD5 where no other is known.

    ``package``: where else the files are had from, the same but for how they are packed.
    """

    base: str
    files: Mapping[str, str]
    package: Package | None = None

    @property
    def instead(self) -> Mapping[str, str]:
        """A package's own files in place of the publisher's, with their SHA-256; empty where there are none."""
        return {} if self.package is None else self.package.instead

    def check(self, what: str, file: str, content: bytes) -> None:
        """Raise :class:`FetchError` for what is neither the published file nor one that holds the same."""
        known = self.files[file] if file in self.files else self.instead[file]
        held = None if self.package is None else self.package.holds.get(file)
        found = _sum(content, known)
        if found == known or held is not None and _held_sum(content) == held:
            return
        wanted = known if held is None else f"{known}, or of what it holds {held}"
        raise FetchError(f"{what} is not the expected file: its {_kind(known)} is {found}, expected {wanted}")

    def elsewhere(self, name: str, folder: Path) -> str:
        """The commands that get the set from its package into a folder; empty where no package is known."""
        if self.package is None:
            return ""
        commands = self.package.commands.format(folder=shlex.quote(str(folder / name)))
        return f"; {self.package.name} has the same: {commands}"


def fetch_files(name: str, source: PublishedSet, folder: Path, *, base: str | None = None) -> Path:
    """Have a set in ``folder/name`` and return that folder; raises :class:`FetchError`.

    What is there already and is a known file stays as it is, a package's own files too. The rest is downloaded, and
    written when all of it is the publisher's.
    """
    target, contents = folder / name, dict[str, bytes]()
    if source.instead and all(_is_there(source, target / file) for file in source.instead):
        return target
    for file in source.files:
        if _is_there(source, target / file):
            continue
        url = f"{base or source.base}/{file}"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
                contents[file] = answer.read()
        except (urllib.error.URLError, TimeoutError) as error:
            raise FetchError(f"{url} could not be read ({error}){source.elsewhere(name, folder)}") from None
        source.check(url, file, contents[file])
    for file, content in contents.items():
        target.mkdir(parents=True, exist_ok=True)
        (target / file).write_bytes(content)
    return target


def checked_files(name: str, source: PublishedSet) -> dict[str, bytes]:
    """Contents of a set's files in ``BALLAST_DATA_DIR``: the publisher's, or where none is there a package's own.

    Raises
    ------
    MissingDataError
        A file is not there.
    FetchError
        One is not the expected one.
    """
    folder, instead = data_folder() / name, source.instead
    published = [file for file in source.files if (folder / file).is_file()]
    files = instead if not published and any((folder / file).is_file() for file in instead) else source.files
    contents = dict[str, bytes]()
    for file in files:
        path = folder / file
        if not path.is_file():
            raise MissingDataError(
                f"there is no {path}; set BALLAST_DATA_DIR to the folder of the tables, "
                f"or get it with: python -m tests.benchmarks.fetch {name} --out {shlex.quote(str(data_folder()))}"
                f"{source.elsewhere(name, data_folder())}"
            )
        contents[file] = path.read_bytes()
        source.check(str(path), file, contents[file])
    return contents


def _is_there(source: PublishedSet, path: Path) -> bool:
    try:
        source.check(str(path), path.name, path.read_bytes())
    except (OSError, FetchError):
        return False
    return True


def _held_sum(content: bytes) -> str:
    """SHA-256 of what a gzipped file holds; empty for another file."""
    try:
        return hashlib.sha256(gzip.decompress(content)).hexdigest()
    except (OSError, EOFError, zlib.error):
        return ""


def _kind(known: str) -> str:
    return "SHA-256" if len(known) == 64 else "MD5"


def _sum(content: bytes, known: str) -> str:
    """Checksum of the same kind as a known one."""
    return hashlib.new(_kind(known).replace("-", ""), content, usedforsecurity=False).hexdigest()
