"""Pages and limits of lists as the statements say them."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from sqlalchemy.dialects import sqlite

from services.round_store.database.queries import MAX_PAGE, narrowed, page
from services.round_store.tables.runs import RunRow


@pytest.mark.parametrize(("limit", "offset", "wanted"), [
    (10, 5, (10, 5)), (MAX_PAGE, 0, (MAX_PAGE, 0)), (MAX_PAGE + 1, 0, (MAX_PAGE, 0)), (10**9, 3, (MAX_PAGE, 3)),
    (0, 0, (0, 0)), (-1, -7, (0, 0)),
])
def test_a_page_is_never_all_there_is(limit: int, offset: int, wanted: tuple[int, int]) -> None:
    """SQLite takes a limit below 0 for none."""
    found = page(select(RunRow.run_id), limit, offset).compile(dialect=sqlite.dialect())
    assert sorted(found.params.values()) == sorted(wanted)
    text = str(found.statement.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    assert text.endswith(f"LIMIT {wanted[0]} OFFSET {wanted[1]}")


def test_only_none_asks_for_nothing() -> None:
    """An empty text and a False are values: a list narrowed to them must not be the whole one."""
    limits = ((RunRow.plan_name, ""), (RunRow.cancel_requested, False), (RunRow.status, None))
    wanted = narrowed(select(RunRow.run_id), *limits)
    text = str(wanted.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    where = text.partition("WHERE ")[2]
    assert "runs.plan_name = ''" in where and "cancel_requested" in where and "status" not in where
