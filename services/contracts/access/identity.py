"""Who may call the API: roles and tokens, without the tokens' secrets."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from services.contracts.base import SHA256_PATTERN, TITLE_PATTERN, Contract

TokenId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
"""The public part of a token: 12 hexadecimal digits."""

Sha256 = Annotated[str, StringConstraints(pattern=SHA256_PATTERN)]
"""A SHA-256 digest in hexadecimal."""


class Role(StrEnum):
    """What a caller is; each role may do all that the ones before it may."""

    VIEWER = "viewer"
    ENGINEER = "engineer"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


Scope = Literal["read", "diagnose", "inspect", "operate", "administer"]
"""A kind of action that a token may be narrowed to, within its role; ``operate`` has ``inspect`` in it."""


class ApiToken(Contract):
    """An API token as it may be shown: everything but its secret. ``scopes`` None: all that its role may do."""

    token_id: TokenId
    name: str = Field(min_length=1, max_length=80, pattern=TITLE_PATTERN)
    role: Role
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None
    revoked_at: AwareDatetime | None = None
    last_used_at: AwareDatetime | None = None
    scopes: tuple[Scope, ...] | None = Field(default=None, min_length=1)

    def is_live(self, now: datetime) -> bool:
        """Whether the token is neither revoked nor expired at ``now``."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class StoredToken(Contract):
    """A token as it is stored: with the SHA-256 of its secret, never the secret."""

    token: ApiToken
    secret_sha256: Sha256


class ConsoleSession(Contract):
    """Somebody is signed in to the console. ``session_id`` are the first digits of its secret's SHA-256."""

    ID_DIGITS: ClassVar[int] = 16

    session_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    token_id: TokenId
    created_at: AwareDatetime
    last_used_at: AwareDatetime
    expires_at: AwareDatetime
