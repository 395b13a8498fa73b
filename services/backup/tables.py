"""Rows of a database as lines of JSON that SQLite and PostgreSQL write and read alike, bit for bit."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any, Final

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    DateTime,
    ForeignKeyConstraint,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    func,
    insert,
    inspect,
    select,
    text,
)

REVISION_TABLE: Final = "alembic_version"
MEMBER_BYTES: Final = 4 * 2**20
"""Size from which on a table's rows go on in another member."""
_AT_ONCE = 500  # rows of a statement
_LARGE_AT_ONCE = 8  # rows with frames in them may be several MB each
_TEXT = Callable[[str], str]


def reflected(connection: Connection) -> list[Table]:
    """Tables of a database as they are there, each after those that it refers to; without that of the migrations.

    Columns, primary keys and references alone: what SQLAlchemy's own reflection asks for besides (indexes, checks,
    unique columns) takes longer than all the rest.
    """
    there, metadata = inspect(connection), MetaData()
    keys, references = there.get_multi_pk_constraint(), there.get_multi_foreign_keys()
    for place, columns in there.get_multi_columns().items():
        for column in columns:
            if isinstance(column["type"], JSON):
                column["type"].none_as_null = True
        Table(
            place[1], metadata,
            *(Column(column["name"], column["type"], autoincrement=False) for column in columns),
            PrimaryKeyConstraint(*keys[place]["constrained_columns"]),
            *(ForeignKeyConstraint(each["constrained_columns"], [
                f"{each['referred_table']}.{column}" for column in each["referred_columns"]
            ]) for each in references[place]),
        )
    return [table for table in metadata.sorted_tables if table.name != REVISION_TABLE]


def revision(connection: Connection) -> str | None:
    """Revision of the migrations that a database is at; None where it has none."""
    if not inspect(connection).has_table(REVISION_TABLE):
        return None
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {REVISION_TABLE}"))
    return found


def dump(connection: Connection, table: Table, keep: Callable[[dict[str, Any]], bool] | None = None) -> Iterator[bytes]:
    """Rows of a table in parts: the names of the columns on the first line of each, then a row on each line.

    A table without rows is one part with the names alone. ``keep`` leaves out rows.
    """
    names = [column.name for column in table.columns]
    documents = [isinstance(column.type, JSON) for column in table.columns]
    lines, size, given = [json.dumps(names)], 0, False
    rows = connection.execute(
        select(table).order_by(*table.primary_key.columns),
        execution_options={"stream_results": True, "yield_per": _rows_at_once(table)},
    )
    for row in rows:
        if keep is not None and not keep(dict(zip(names, row, strict=True))):
            continue
        lines.append(json.dumps([_plain(value, is_json) for value, is_json in zip(row, documents, strict=True)]))
        size += len(lines[-1])
        if size >= MEMBER_BYTES:
            yield ("\n".join(lines) + "\n").encode()
            lines, size, given = lines[:1], 0, True
    if len(lines) > 1 or not given:
        yield ("\n".join(lines) + "\n").encode()


def rows(part: bytes) -> Iterator[dict[str, Any]]:
    """Rows of a part of a dump, each with the values of its columns by name; times with their zone."""
    first, *lines = part.decode().splitlines()
    names = json.loads(first)
    for line in lines:
        yield dict(zip(names, (_value(value, None) for value in json.loads(line)), strict=True))


def fill(connection: Connection, table: Table, part: bytes, rewritten: _TEXT | None = None) -> int:
    """Insert the rows of a part of a dump; how many. ``rewritten`` is what each text becomes."""
    first, *lines = part.decode().splitlines()
    names, sqlite = json.loads(first), connection.dialect.name == "sqlite"
    columns = [table.columns[name] for name in names]
    naive = [isinstance(column.type, DateTime) and sqlite for column in columns]
    truths = [isinstance(column.type, Boolean) for column in columns]
    rows = []
    for line in lines:
        values = [_value(value, rewritten) for value in json.loads(line)]
        rows.append({
            name: value.replace(tzinfo=None) if is_naive and value is not None
            else bool(value) if truth and value is not None else value
            for name, value, is_naive, truth in zip(names, values, naive, truths, strict=True)
        })
    for start in range(0, len(rows), _AT_ONCE):
        connection.execute(insert(table), rows[start : start + _AT_ONCE])
    return len(rows)


def empty(connection: Connection, tables: Iterable[Table]) -> None:
    """Take away the rows that a new database begins with."""
    for table in reversed(list(tables)):
        if connection.scalar(select(func.count()).select_from(table)):
            connection.execute(table.delete())


def reset_counters(connection: Connection, tables: Iterable[Table]) -> None:
    """Let PostgreSQL's counters go on after the greatest number that is there; SQLite's do by themselves."""
    if connection.dialect.name != "postgresql":
        return
    for table in tables:
        for column in table.primary_key.columns:
            name = connection.scalar(select(func.pg_get_serial_sequence(table.name, column.name)))
            greatest = None if name is None else connection.scalar(select(func.max(column)))
            if greatest is not None and greatest > 0:  # MLflow's default experiment is 0: before a counter's beginning
                connection.execute(select(func.setval(name, greatest)))


def _rows_at_once(table: Table) -> int:
    return _LARGE_AT_ONCE if any(isinstance(column.type, LargeBinary) for column in table.columns) else _AT_ONCE


def _plain(value: Any, is_json: bool) -> Any:
    if value is None:
        return None
    if is_json:
        return {"json": value}
    if isinstance(value, bytes | memoryview):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return {"at": moment.isoformat()}
    if isinstance(value, date):
        return {"day": value.isoformat()}
    return value


def _value(value: Any, rewritten: _TEXT | None) -> Any:
    if isinstance(value, str):
        return value if rewritten is None else rewritten(value)
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    match kind:
        case "bytes":
            return base64.b64decode(held)
        case "at":
            return datetime.fromisoformat(held)
        case "day":
            return date.fromisoformat(held)
        case _:
            return held
