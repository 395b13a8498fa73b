"""What all repositories do with rows: find one, insert one, narrow a list and cut a page from it."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from sqlalchemy import CursorResult, Result, Select, Table
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute, Session

from services.contracts.errors import ConflictError, NotFoundError
from services.round_store.tables.columns import Base

MAX_PAGE = 1000
"""Most rows of one page."""

Row = TypeVar("Row", bound=Base)
Rows = TypeVar("Rows", bound=Select[Any])


def stored_row(session: Session, kind: type[Row], key: Any, missing: str, *, lock: bool = False) -> Row:
    """Row by its key, as the database has it now; ``NotFoundError`` with ``missing`` where there is none."""
    row = session.get(kind, key, with_for_update=lock or None, populate_existing=True)
    if row is None:
        raise NotFoundError(missing)
    return row


def table_of(kind: type[Base]) -> Table:
    """Table of a kind of row: a statement on it passes the object mapper by, which is most of a small one's cost."""
    return cast(Table, kind.__table__)


def insert_new(session: Session, row: Base, taken: str, code: str | None = None) -> None:
    """Insert a row now; ``ConflictError`` with ``taken`` where another has just taken what must be unique in it.

    ``code`` is the error's, where whoever comes a moment later is told one of its own.
    """
    session.add(row)
    try:
        session.flush()
    except IntegrityError:
        raise ConflictError(taken, code=code) from None


def narrowed(wanted: Rows, *limits: tuple[InstrumentedAttribute[Any], object]) -> Rows:
    """Only the rows whose columns have the given values; a value of None asks for nothing."""
    for column, value in limits:
        if value is not None:
            wanted = wanted.where(column == value)
    return wanted


def page(wanted: Rows, limit: int, offset: int) -> Rows:
    """At most ``limit`` rows, never more than :data:`MAX_PAGE`, after the first ``offset``."""
    return wanted.limit(min(max(limit, 0), MAX_PAGE)).offset(max(offset, 0))


def rows_touched(result: Result[Any]) -> int:
    """Number of rows that an UPDATE or DELETE found; ``TypeError`` for another statement."""
    if not isinstance(result, CursorResult):
        raise TypeError("only a statement that changes rows has a row count")
    return result.rowcount


def new_key(result: Result[Any]) -> int:
    """Key that the server counted up for the row of an INSERT; ``TypeError`` for another statement."""
    if not isinstance(result, CursorResult) or result.inserted_primary_key is None:
        raise TypeError("only the INSERT of one row has a key")
    return int(result.inserted_primary_key[0])
