"""The tables: metadata of sites, plans, runs, versions and callers; no column holds data of a plant."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from services.round_store.columns import COUNTER, Base

_NOT_REVOKED = text("revoked_at IS NULL")
METADATA = Base.metadata


class SiteRow(Base):
    """An enrolled plant."""

    __tablename__ = "sites"

    site_id: Mapped[str] = mapped_column(primary_key=True)
    public_key: Mapped[str] = mapped_column(unique=True)
    asset_types: Mapped[list[Any]]
    status: Mapped[str]
    description: Mapped[str]
    enrolled_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    last_seen: Mapped[datetime | None]
    agent_version: Mapped[str]
    former_key: Mapped[str | None]
    former_key_until: Mapped[datetime | None]
    notice: Mapped[str]
    silent_at: Mapped[datetime | None]


class AssetTypeRow(Base):
    """One version of an asset type."""

    __tablename__ = "asset_types"

    name: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    document: Mapped[dict[str, Any]]
    fingerprint: Mapped[str]
    created_at: Mapped[datetime]


class PlanRow(Base):
    """A plan as it is now."""

    __tablename__ = "plans"

    name: Mapped[str] = mapped_column(primary_key=True)
    document: Mapped[dict[str, Any]]
    paused: Mapped[bool]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    version: Mapped[int]
    archived: Mapped[bool]


class PlanVersionRow(Base):
    """A plan as it was given once, the present one too, and by whom."""

    __tablename__ = "plan_versions"

    name: Mapped[str] = mapped_column(ForeignKey("plans.name"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    document: Mapped[dict[str, Any]]
    actor: Mapped[str]
    reason: Mapped[str]
    created_at: Mapped[datetime]


class ModelVersionRow(Base):
    """A version that stands in the registry."""

    __tablename__ = "model_versions"

    name: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), index=True)
    status: Mapped[str]
    reason: Mapped[str]
    metrics: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class AliasChangeRow(Base):
    """History of an alias; the registry holds where it points now."""

    __tablename__ = "alias_changes"
    __table_args__ = (
        ForeignKeyConstraint(["name", "version"], ["model_versions.name", "model_versions.version"]),
        Index(None, "name", "alias", "number", unique=True),
    )

    number: Mapped[int] = mapped_column(COUNTER, primary_key=True)
    name: Mapped[str]
    alias: Mapped[str]
    version: Mapped[str | None]
    previous_version: Mapped[str | None]
    actor: Mapped[str]
    reason: Mapped[str]
    at: Mapped[datetime]


class ApiTokenRow(Base):
    """An API token: the hash of its secret, never the secret."""

    __tablename__ = "api_tokens"
    __table_args__ = (
        Index("uq_api_tokens_name", "name", unique=True, sqlite_where=_NOT_REVOKED, postgresql_where=_NOT_REVOKED),
    )

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


class AuditEventRow(Base):
    """One entry of the audit trail; triggers refuse to change or delete it."""

    __tablename__ = "audit_events"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    actor: Mapped[str]
    role: Mapped[str | None]
    action: Mapped[str]
    target: Mapped[str] = mapped_column(index=True)
    reason: Mapped[str]
    before: Mapped[dict[str, Any] | None]
    after: Mapped[dict[str, Any] | None]
    previous_hash: Mapped[str] = mapped_column(unique=True)
    hash: Mapped[str]


class AuditHeadRow(Base):
    """The one row that says where the trail ends: writers take turns on it, and a cut tail shows against it."""

    __tablename__ = "audit_head"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int]
    hash: Mapped[str]
