"""The tables of versions in the registry, and of what their aliases pointed at."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from services.round_store.tables import runs  # noqa: F401 - a version refers to its run
from services.round_store.tables.columns import COUNTER, Base


class ModelVersionRow(Base):
    """A version that stands in the registry."""

    __tablename__ = "model_versions"

    name: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), index=True)
    status: Mapped[str]
    reason: Mapped[str]
    signed_sha256: Mapped[str | None]
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
