"""API tokens: made, taken apart and checked.

A token reads ``blst_<id>_<secret>``: the id is public and finds the stored row, the secret is 256 bits from the
operating system's random source, shown once. What is stored is the plain SHA-256 of the secret. A slow or salted hash
(scrypt, Argon2) protects secrets that people choose, which can be guessed. Of 2^256 random secrets none can, at any
speed, and no two are alike: a salt would add nothing, and a slow hash only its time to every request.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import ValidationError

from services.contracts.access.identity import ApiToken, Role, Scope, StoredToken
from services.contracts.errors import InvalidInputError
from services.contracts.reading import explain
from services.identity.errors import UnauthenticatedError
from services.identity.roles import Permission, allows

PREFIX = "blst"
ID_BYTES = 6  # names a token in lists and the trail; it is no secret
SECRET_BYTES = 32  # 256 bits, which nobody guesses
_FORM = re.compile(rf"{PREFIX}_([0-9a-f]{{{2 * ID_BYTES}}})_([0-9a-f]{{{2 * SECRET_BYTES}}})", re.ASCII)
_NOBODY = "0" * 64  # compared with where no token is, so that both take as long


@dataclass(frozen=True)
class IssuedToken:
    """A new token: ``text`` goes to its holder, once; ``stored`` goes to the store."""

    text: str = field(repr=False)
    stored: StoredToken


def issue(
    name: str,
    role: Role,
    now: datetime,
    lifetime: timedelta | None = None,
    scopes: tuple[Scope, ...] | None = None,
) -> IssuedToken:
    """Make a token.

    Parameters
    ----------
    name
        Who or what will hold it: the audit trail shows it.
    role
        What the holder may do.
    now
        Time of creation, with its zone.
    lifetime
        How long it holds; None: until it is revoked.
    scopes
        What it is narrowed to; None: all that the role may do.

    Raises
    ------
    InvalidInputError
        For an empty name, a lifetime that is not positive, or a scope that the role does not have.
    """
    if lifetime is not None and lifetime <= timedelta(0):
        raise InvalidInputError("a token must hold for a while: give an end that lies in the future")
    beyond = [scope for scope in scopes or () if not allows(role, Permission(scope))]
    if beyond:
        raise InvalidInputError(f"the role {role.value} does not have the scope {beyond[0]}; choose a greater role")
    token_id, secret = secrets.token_hex(ID_BYTES), secrets.token_hex(SECRET_BYTES)
    expires_at = None if lifetime is None else now + lifetime
    try:
        token = ApiToken(
            token_id=token_id, name=name.strip(), role=role, created_at=now, expires_at=expires_at, scopes=scopes
        )
    except ValidationError as error:
        raise InvalidInputError(f"token: {explain(error)}") from None
    return IssuedToken(f"{PREFIX}_{token_id}_{secret}", StoredToken(token=token, secret_sha256=hash_secret(secret)))


def token_id_of(text: str) -> str:
    """Id of a token, to find its row with; raise :class:`UnauthenticatedError` for a text that is no token."""
    return _parts(text)[0]


def check(text: str, stored: StoredToken | None, now: datetime) -> ApiToken:
    """Token of a caller, if the text is its secret and it holds at ``now``.

    The comparison takes the same time wherever the secrets differ, and is made also when there is no such token. A
    wrong secret and an unknown id are answered alike; only who has the secret learns that it is revoked or expired.

    Raises
    ------
    UnauthenticatedError
        Otherwise, with the reason.
    """
    _, secret = _parts(text)
    expected = _NOBODY if stored is None else stored.secret_sha256
    matches = hmac.compare_digest(hash_secret(secret), expected)
    if stored is None or not matches or stored.token.token_id != token_id_of(text):
        raise UnauthenticatedError("this token is not known")
    if stored.token.revoked_at is not None:
        raise UnauthenticatedError("this token was revoked", code="token_revoked")
    if not stored.token.is_live(now):
        raise UnauthenticatedError("this token has expired", code="token_expired")
    return stored.token


def hash_secret(secret: str) -> str:
    """SHA-256 of a secret, hexadecimal."""
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def fingerprint(stored: StoredToken) -> str:
    """What the audit trail knows a stored hash by, so that another in its place is told; it says nothing of either."""
    return hashlib.sha256(f"ballast token {stored.secret_sha256}".encode("ascii")).hexdigest()[:16]


def _parts(text: str) -> tuple[str, str]:
    found = _FORM.fullmatch(text)
    if found is None:
        raise UnauthenticatedError(f"this is not a token: it should read {PREFIX}_<id>_<secret>")
    return found[1], found[2]
