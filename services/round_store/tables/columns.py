"""Column types that answer the same on SQLite and PostgreSQL, and the base of all tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    TextClause,
)
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
"""Every constraint has a name that follows from its columns, so that a later migration can find it."""


_CONDITION = "condition"
"""Where an index notes which rows it is unique among."""
COUNTER = BigInteger().with_variant(Integer, "sqlite")
"""A key that the server counts up: SQLite does so only for the type INTEGER."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC. SQLite has no zones: there it is stored without one, and always read back with UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Moment to column; ``ValueError`` for a naive time, for nobody knows what it means."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored; give it in UTC")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Column to moment in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of all tables.

    Floats are 8 bytes wide on both servers, infinities included, so they come back bit for bit. JSON documents are
    stored as text (not ``jsonb``, which forgets the sign of -0.0).
    """

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {
        str: String,
        int: BigInteger,
        float: Double,
        bytes: LargeBinary,
        datetime: UtcDateTime,
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON(none_as_null=True),
    }


def unique_where(condition: TextClause, name: str, column: str) -> Index:
    """Index that is unique among the rows which hold a condition.

    An option of a dialect, such as ``postgresql_where``, loads that dialect at once, which costs every command 50 ms:
    the condition is noted, and :func:`spell_conditions` spells it for the server where the tables are compared or made.
    """
    return Index(name, column, unique=True, info={_CONDITION: condition})


def spell_conditions(dialect: str) -> None:
    """Have every index that is unique among some rows say so in the words of a dialect."""
    for table in Base.metadata.tables.values():
        for index in table.indexes:
            if _CONDITION in index.info:
                index.dialect_kwargs[f"{dialect}_where"] = index.info[_CONDITION]
