"""Every stored value, for the test that no plant's data is among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Engine, MetaData, select


class Cell(NamedTuple):
    """One value of one column of one row, as the server holds it."""

    table: str
    column: str
    value: Any


def all_columns(engine: Engine, known: MetaData | None = None) -> Iterator[Cell]:
    """Every value of every column of every table that the database has, also of tables that we do not know.

    ``known`` holds the tables of an earlier look: those that came since are added to it, the others are not looked up.
    """
    found = MetaData() if known is None else known
    with engine.connect() as connection:
        found.reflect(connection)
        for table in found.sorted_tables:
            for row in connection.execute(select(table)).mappings():
                for column, value in row.items():
                    yield Cell(table.name, str(column), value)
