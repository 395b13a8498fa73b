"""The tables of the audit trail."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from services.round_store.tables.columns import Base


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
