"""The table of enrolled plants; no column holds data of a plant."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from services.round_store.tables.columns import Base


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
    earlier_keys: Mapped[list[Any]]
    notice: Mapped[str]
    silent_at: Mapped[datetime | None]
