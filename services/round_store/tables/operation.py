"""The tables of daily operation: enrolment codes, outcomes, events, webhooks, and shared keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from services.round_store.tables.columns import COUNTER, Base


class EnrolmentCodeRow(Base):
    """A code by which one plant may enrol once: the hash of its secret, never the secret."""

    __tablename__ = "enrolment_codes"

    code_id: Mapped[str] = mapped_column(primary_key=True)
    site_id: Mapped[str] = mapped_column(index=True)
    secret_sha256: Mapped[str]
    asset_type: Mapped[str]
    description: Mapped[str]
    replaces_key: Mapped[bool]
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    used_key: Mapped[str | None]
    revoked_at: Mapped[datetime | None]


class OutcomeRow(Base):
    """What a request with an idempotency key was answered; ``sealed`` is readable with the caller's token alone."""

    __tablename__ = "outcomes"
    __table_args__ = (Index(None, "created_at"),)

    token_id: Mapped[str] = mapped_column(primary_key=True)
    key_sha256: Mapped[str] = mapped_column(primary_key=True)
    request_sha256: Mapped[str]
    created_at: Mapped[datetime]
    sealed: Mapped[bytes | None]


class EventRow(Base):
    """Something that happened, in the order of its number; old ones are dropped."""

    __tablename__ = "events"
    __table_args__ = (Index(None, "at"),)

    number: Mapped[int] = mapped_column(COUNTER, primary_key=True)
    at: Mapped[datetime]
    kind: Mapped[str]
    document: Mapped[dict[str, Any]]


class WebhookRow(Base):
    """An address that events are sent to; its secret follows from a key that is not in the database."""

    __tablename__ = "webhooks"

    webhook_id: Mapped[str] = mapped_column(primary_key=True)
    url: Mapped[str] = mapped_column(unique=True)
    kinds: Mapped[list[Any]]
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    last_number: Mapped[int]
    failures: Mapped[int]
    last_failure: Mapped[str]
    delivered_at: Mapped[datetime | None]
    due_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]


class ServiceKeyRow(Base):
    """A key that all API processes have in common: its fingerprint, never the key."""

    __tablename__ = "service_keys"

    name: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str]
    home: Mapped[str]
    created_at: Mapped[datetime]
