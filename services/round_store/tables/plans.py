"""The tables of asset types and plans, with their versions."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from services.round_store.tables.columns import Base


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
