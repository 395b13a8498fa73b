r"""The line of the OEM's keys: each change is a statement that the former key and the next one both sign.

Whoever trusts one key of the line can tell offline what the others may vouch for. From a trusted key

- forward: a key that it named as its successor is trusted like itself;
- back: its predecessor vouches for versions made up to its own end (``former_until``);
- a key that was stolen vouches for nothing that was made later, whatever date a version bears: the statement lists the
  versions that stood then, by digest, and nothing else of the stolen key or of the keys before it is let in. Forward
  of a stolen key nobody is trusted, for the thief could name a successor as well: its holders are told to ask the OEM.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from services.contracts.base import Contract
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.keys.signing import check_public_key, public_key, signer, verify

FILE = "oem-keys.json"
"""Name of the file of statements beside a version's document."""
_PURPOSE = b"ballast.key-statement/1\n"
_SIGNATURES = {"by_former", "by_next"}


class SignatureError(ConflictError):
    """A version that the OEM did not sign as it stands."""

    code = "bad_signature"


class KeyStatement(Contract):
    """The coordinator's key was changed; ``standing``: of a stolen key, SHA-256 of the versions that stood then."""

    former: str
    next: str
    at: AwareDatetime
    former_until: AwareDatetime
    stolen: bool = False
    standing: tuple[str, ...] = ()
    by_former: str = ""
    by_next: str = ""

    def covered(self) -> bytes:
        """What both keys sign."""
        plain = self.model_dump(mode="json", exclude=_SIGNATURES)
        return _PURPOSE + json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Warrant:
    """What a key of the line may vouch for: versions made up to ``until``, of the digests ``standing``; None: any."""

    until: datetime | None = None
    standing: frozenset[str] | None = None


def state_change(
    former_seed: Path, next_seed: Path, at: datetime, former_until: datetime, standing: Iterable[str] | None = None
) -> KeyStatement:
    """Statement of a change of keys, signed by both; ``standing`` given: the former key was stolen."""
    stolen = standing is not None
    drafted = KeyStatement(
        former=public_key(former_seed), next=public_key(next_seed), at=at, former_until=at if stolen else former_until,
        stolen=stolen, standing=tuple(sorted(set(standing or ()))),
    )
    signed = {
        name: base64.b64encode(signer(seed)(drafted.covered())).decode()
        for name, seed in (("by_former", former_seed), ("by_next", next_seed))
    }
    return drafted.model_copy(update=signed)


def read_statements(text: str | bytes) -> tuple[KeyStatement, ...]:
    """Statements of a file, each signed by both of its keys, no key twice in the same place of the line.

    Raises
    ------
    InvalidInputError
        It is no such file.
    SignatureError
        A signature does not hold, or two keys claim to follow, or to come before, the same one.
    """
    try:
        found = _STATEMENTS.validate_json(text)
        for each in found:
            check_public_key(each.former)
            check_public_key(each.next)
    except (ValidationError, InvalidInputError):
        raise InvalidInputError(f"not a list of key statements: {FILE} must be the file that the OEM gave") from None
    for each in found:
        for key, signature in ((each.former, each.by_former), (each.next, each.by_next)):
            if not verify(key, each.covered(), _raw(signature)):
                raise SignatureError(f"the change from the key {each.former} is not signed by {key}")
    for places in ([each.former for each in found], [each.next for each in found]):
        if len(set(places)) < len(places):
            raise SignatureError("two keys claim one place in the line of the OEM's keys; ask the OEM which is its own")
    return found


def up_to(present: str | None, statements: Iterable[KeyStatement]) -> tuple[KeyStatement, ...]:
    """Statements up to the present key; that of a change which was never finished has it for its former one."""
    return tuple(each for each in statements if each.former != present)


def write_statements(statements: Sequence[KeyStatement]) -> str:
    """The file's text."""
    return _STATEMENTS.dump_json(tuple(statements), indent=1).decode() + "\n"


def warrants(anchor: str, statements: Sequence[KeyStatement]) -> dict[str, Warrant]:
    """What each key of the line may vouch for, for who trusts ``anchor``, by key.

    Raises
    ------
    SignatureError
        The anchor itself, or a key that it made its successor, was revoked as stolen.
    """
    after, before = {each.former: each for each in statements}, {each.next: each for each in statements}
    found, key = {anchor: Warrant()}, anchor
    while (change := after.get(key)) is not None and change.next not in found:
        if change.stolen:
            raise SignatureError(
                f"the OEM's key {key} was revoked as stolen on {change.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC; "
                "ask the OEM for its present key, by a way that you trust"
            )
        found[key], key = Warrant(change.former_until), change.next
        found[key] = Warrant()
    key, standing = anchor, None
    while (change := before.get(key)) is not None and change.former not in found:
        if change.stolen:
            listed = frozenset(change.standing)
            standing = listed if standing is None else standing & listed
        key = change.former
        found[key] = Warrant(change.former_until, standing)
    return found


def check_warrant(warrant: Warrant, signed_by: str, created_at: object, covered: bytes) -> None:
    """Refuse what a former key signed and may not vouch for; ``covered`` is what the signature covers.

    :class:`SignatureError` says why.
    """
    if warrant.standing is not None:
        if hashlib.sha256(covered).hexdigest() not in warrant.standing:
            raise SignatureError(
                f"the version is signed by {signed_by}, at or before a key that was stolen, and is not among those "
                "that stood when it was revoked"
            )
        return
    if warrant.until is None:
        return
    try:
        made = datetime.fromisoformat(str(created_at))
    except ValueError:
        raise SignatureError("the version does not say when it was made") from None
    if made.tzinfo is None or made > warrant.until:
        raise SignatureError(f"the version was made after the end of the key {signed_by} that signed it")


def _raw(signature: str) -> bytes:
    try:
        return base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return b""


_STATEMENTS: TypeAdapter[tuple[KeyStatement, ...]] = TypeAdapter(tuple[KeyStatement, ...])
