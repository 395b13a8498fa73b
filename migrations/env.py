"""What Alembic runs: it gets its connection, already in a transaction, from ``migrations.run``."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection

from services.round_store.tables.all_tables import METADATA
from services.round_store.tables.columns import UtcDateTime, spell_conditions


def render(kind: str, item: Any, _autogenerate: Any) -> str | Literal[False]:
    """A new revision names plain types only, so that it stays what it was when the tables change."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


def run() -> None:
    """Run the wanted migrations on the connection that was handed over; ``RuntimeError`` where there is none."""
    connection = context.config.attributes.get("connection")
    if not isinstance(connection, Connection):
        raise RuntimeError("run migrations through migrations.run, which opens the transaction")
    spell_conditions(connection.dialect.name)
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        render_as_batch=True,  # SQLite alters a table by making it anew
        render_item=render,
    )
    context.run_migrations()


run()
