"""Keys that every API process of a service must share: files of the home folder, held to what the store knows of them.

A key's fingerprint is HMAC-SHA256(key, "ballast.fingerprint/1 " + name): of a key of 256 random bits it tells nothing,
and no secret that follows from the key is made of the same text. The first use of a key enters it in the store.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from services.contracts.access.service_key import ServiceKey
from services.contracts.errors import BallastError, InvalidInputError, UnavailableError
from services.process.private_files import made_once

WEBHOOKS: Final = "webhooks.key"
PSEUDONYMS: Final = "pseudonyms.key"
MEANINGS: Final[Mapping[str, str]] = {
    WEBHOOKS: "the secrets of all webhooks follow from it: with a new one add the webhooks anew",
    PSEUDONYMS: "plants' pseudonyms follow from it: with a new one they change",
}
"""What goes with each key where it is lost."""
KEY_BYTES: Final = 32
"""As many as HMAC-SHA256 uses."""
_KEY = re.compile(rf"(?:[0-9a-fA-F]{{2}}){{{KEY_BYTES},}}")


class KnownKeys(Protocol):
    """What the store knows of the keys."""

    def find(self, name: str) -> ServiceKey | None:
        """Key of a name; None where none was ever used."""

    def first(self, name: str, fingerprint: str, home: str) -> ServiceKey:
        """Let this be the service's key unless there is one; which it is."""


class OtherKeyError(UnavailableError):
    """The home folder's key is not the one that the service uses, or is missing there."""

    code = "other_key"


class ServiceKeys:
    """The keys of one home folder. Safe to share between threads and processes."""

    def __init__(self, home: Path, known: KnownKeys) -> None:
        self._home = home
        self._known = known
        self._given: dict[str, str] = {}

    def path(self, name: str) -> Path:
        """File of a key."""
        return self._home / name

    def get(self, name: str) -> bytes:
        """Key of a name, made where the service has none yet.

        ``OtherKeyError`` where it is not the service's, ``UnavailableError`` where it cannot be read or made.
        """
        known = self._known.find(name)
        if known is None:
            known = self._first(name)
        key = self._held_to(known)
        self._given[name] = known.fingerprint
        return key

    def _first(self, name: str) -> ServiceKey:
        """The service's key where it had none a moment ago: this home folder's, unless another was quicker."""
        path = self.path(name)
        try:
            made = made_once(path, lambda: secrets.token_hex(KEY_BYTES))
        except OSError as error:
            raise UnavailableError(f"the key {path} cannot be made: {_said(error)}") from error
        try:
            own = fingerprint(name, read_key(path))
        except UnavailableError:  # its maker takes a key back once the store knows another one
            known = self._known.find(name)
            if known is None:
                raise
            return known
        known = self._known.first(name, own, place(path))
        if made and known.fingerprint != own:
            path.unlink(missing_ok=True)
        return known

    def problem(self, name: str) -> str:
        """What is wrong with a key, in a line; empty where nothing is, or where the service has no such key yet."""
        known = self._known.find(name)
        if known is None:
            return ""
        try:
            self._held_to(known)
        except OtherKeyError as error:
            return str(error)
        if self._given.get(name, known.fingerprint) != known.fingerprint:
            return f"{self.path(name)} was replaced since this process began: start it again"
        return ""

    def check_held(self) -> None:
        """Raise ``OtherKeyError`` where a key that lies here is not the service's; none needs to be here."""
        for name in MEANINGS:
            problem = self.problem(name) if self.path(name).exists() else ""
            if problem:
                raise OtherKeyError(f"{problem}; what needs no such key runs without the file too")

    def _held_to(self, known: ServiceKey) -> bytes:
        path = self.path(known.name)
        try:
            key = read_key(path)
        except BallastError as error:
            said = f"{path} is missing" if not path.exists() else str(error)
            raise OtherKeyError(f"{said}; {_todo(known)}") from error
        if not hmac.compare_digest(fingerprint(known.name, key), known.fingerprint):
            raise OtherKeyError(f"{path} is not the key that this service uses; {_todo(known)}")
        return key


def _todo(known: ServiceKey) -> str:
    return (f"copy the file {known.home} here, or put it back from a backup; where it is lost, "
            f"`ballast key replace {known.name}` begins with a new one")


def fingerprint(name: str, key: bytes) -> str:
    """Fingerprint of a key, 64 hexadecimal digits."""
    return hmac.new(key, f"ballast.fingerprint/1 {name}".encode(), hashlib.sha256).hexdigest()


def subkey(key: bytes, purpose: str) -> bytes:
    """Key of 32 bytes for a purpose of its own: HMAC-SHA256(key, "ballast.subkey/1 " + purpose)."""
    return hmac.new(key, f"ballast.subkey/1 {purpose}".encode(), hashlib.sha256).digest()


def place(path: Path) -> str:
    """Where a key lies, for whoever has to copy it: ``host:/path``."""
    return f"{socket.gethostname()}:{path.absolute()}"


def read_key(path: Path) -> bytes:
    """Key in a file; ``UnavailableError`` where it cannot be read or is none."""
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise UnavailableError(f"the key {path} cannot be read: {_said(error)}") from error
    if not _KEY.fullmatch(text):
        raise UnavailableError(f"{path} is cut short or no key of {2 * KEY_BYTES} hexadecimal digits")
    return bytes.fromhex(text)


def check_name(name: str) -> str:
    """Return the name of a key; ``InvalidInputError`` for what is none."""
    if name not in MEANINGS:
        raise InvalidInputError(f"there is no key {name[:40]!r}; the keys are {', '.join(MEANINGS)}")
    return name


def _said(error: OSError) -> str:
    return error.strerror or type(error).__name__
