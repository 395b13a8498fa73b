"""Changes of a table after which it fits no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rows = list[list[Any]]


def put(row: int, column: int | slice, value: Any) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        rows[row][column] = value

    return change


def drop_column(rows: Rows) -> None:
    for row in rows:
        del row[0]


def drop_cell(rows: Rows) -> None:
    del rows[7][1]


def keep_header(rows: Rows) -> None:
    del rows[1:]


def clear(rows: Rows) -> None:
    rows.clear()
