"""Many rows in one statement: on PostgreSQL by ``COPY``, which costs less than an ``INSERT`` each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Dialect, Engine, Table, event, insert
from sqlalchemy.orm import Session

_COPIED: Final = "ballast_copied"
"""Option of a statement whose rows go by ``COPY``; its value is the table."""


def insert_rows(session: Session, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all have the same columns; none does nothing."""
    if rows:
        session.execute(_statement(table), rows)


def copy_many(engine: Engine) -> None:
    """Have an engine of PostgreSQL take by ``COPY`` what :func:`insert_rows` gives it; its errors are as of an insert.

    One row alone goes by ``INSERT``, which is one exchange with the server where ``COPY`` is two.
    """
    event.listen(engine, "do_executemany", _copy)


@cache
def _statement(table: Table) -> Any:
    return insert(table).execution_options(**{_COPIED: table})


@cache
def _types(table: Table, dialect: Dialect) -> dict[str, str]:
    return {column.name: column.type.compile(dialect).lower() for column in table.columns}


def _copy(cursor: Any, _statement: str, rows: Sequence[Mapping[str, Any]], context: Any) -> bool:
    """Whether the rows were copied; where not, the driver inserts them."""
    table: Table | None = context.execution_options.get(_COPIED)
    if table is None:
        return False
    names, types = list(rows[0]), _types(table, context.dialect)
    with cursor.copy(f"COPY {table.name} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types([types[name] for name in names])
        for row in rows:
            copy.write_row([row[name] for name in names])
    return True
