"""The history of a model's aliases, which the store keeps for people who read the database."""

from __future__ import annotations

from sqlalchemy import select

from services.contracts.history.records import AliasChange
from services.round_store.store import RoundStore
from services.round_store.tables.versions import AliasChangeRow


def alias_history(store: RoundStore, name: str) -> list[AliasChange]:
    """Changes of a model's aliases, newest first."""
    wanted = select(AliasChangeRow).where(AliasChangeRow.name == name).order_by(AliasChangeRow.number.desc())
    with store.database.read() as session:
        return [AliasChange.of_record(row) for row in session.scalars(wanted)]
