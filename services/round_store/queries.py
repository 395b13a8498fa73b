"""Small helpers that all repositories share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CursorResult, Result

MAX_PAGE = 1000
"""Most rows of one page."""


def rows_touched(result: Result[Any]) -> int:
    """Number of rows that an UPDATE or DELETE found."""
    if not isinstance(result, CursorResult):
        raise TypeError("only a statement that changes rows has a row count")
    return result.rowcount


def page(limit: int, offset: int) -> tuple[int, int]:
    """Limit and offset within what is allowed."""
    return min(max(limit, 0), MAX_PAGE), max(offset, 0)
