"""Every stored value, for the test that no plant's data is among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Engine, inspect, literal_column, select, table


class Cell(NamedTuple):
    """One value of one column of one row, as the server holds it."""

    table: str
    column: str
    value: Any


def all_columns(engine: Engine) -> Iterator[Cell]:
    """Every value of every column of every table that the database has, also of tables that we do not know.

    Values are as the driver gives them: to look up the columns and their types first takes ten times as long.
    """
    with engine.connect() as connection:
        for name in inspect(connection).get_table_names():
            for row in connection.execute(select(literal_column("*")).select_from(table(name))).mappings():
                for column, value in row.items():
                    yield Cell(name, str(column), value)
