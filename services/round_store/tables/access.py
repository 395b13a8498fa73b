"""The tables of callers: API tokens and sessions of the console."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, text
from sqlalchemy.orm import Mapped, mapped_column

from services.round_store.tables.columns import Base, unique_where

_NOT_REVOKED = text("revoked_at IS NULL")


class ApiTokenRow(Base):
    """An API token: the hash of its secret, never the secret."""

    __tablename__ = "api_tokens"
    __table_args__ = (unique_where(_NOT_REVOKED, "uq_api_tokens_name", "name"),)

    token_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    role: Mapped[str]
    secret_sha256: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    scopes: Mapped[list[Any] | None]


class ConsoleSessionRow(Base):
    """A session of the console: the hash of its cookie's secret, never the secret."""

    __tablename__ = "console_sessions"

    secret_sha256: Mapped[str] = mapped_column(primary_key=True)
    token_id: Mapped[str] = mapped_column(ForeignKey("api_tokens.token_id"))
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime]
    expires_at: Mapped[datetime]
