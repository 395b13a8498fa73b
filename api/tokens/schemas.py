"""What the endpoints of API tokens take and give."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from services.contracts.base import Contract
from services.contracts.identity import ApiToken, Role, TokenId


class TokenRequest(Contract):
    """A token to make."""

    name: str = Field(min_length=1, max_length=80, examples=["line 4 gateway"])
    role: Role
    days: float | None = Field(default=None, gt=0, le=3650, description="how long it holds; null: until revoked")


class NewToken(Contract):
    """A token as it is shown this once: ``token`` is its text."""

    token: str = Field(repr=False, description="send it as Authorization: Bearer ...; it cannot be shown again")
    token_id: TokenId
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None


class Tokens(Contract):
    """Tokens, newest first."""

    tokens: tuple[ApiToken, ...]
