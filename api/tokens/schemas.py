"""What the endpoints of API tokens take and give."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import Field, model_validator

from services.contracts.access.identity import ApiToken, Role, Scope, TokenId
from services.contracts.base import Contract, Moment


class TokenRequest(Contract):
    """A token to make."""

    name: str = Field(min_length=1, max_length=80, examples=["line 4 gateway"])
    role: Role
    days: float | None = Field(default=None, gt=0, le=3650, description="how long it holds; null: until revoked")
    expires_at: Moment | None = Field(default=None, description="until when it holds, instead of days")
    scopes: tuple[Scope, ...] | None = Field(
        default=None, min_length=1, description="what it is narrowed to; null: all that its role may do"
    )

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.days is not None and self.expires_at is not None:
            raise ValueError("give days or expires_at, not both")
        return self


class NewToken(Contract):
    """A token as it is shown this once: ``token`` is its text."""

    token: str = Field(repr=False, description="send it as Authorization: Bearer ...; it cannot be shown again")
    token_id: TokenId
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None
    scopes: tuple[Scope, ...] | None


class Tokens(Contract):
    """Tokens, newest first."""

    tokens: tuple[ApiToken, ...]
