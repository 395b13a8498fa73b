"""What the tables say of their columns and indices, in the words of each server."""

from __future__ import annotations

import pytest
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex

from services.round_store.tables.all_tables import METADATA
from services.round_store.tables.columns import spell_conditions


@pytest.mark.parametrize("dialect", [sqlite.dialect(), postgresql.dialect()], ids=["sqlite", "postgresql"])
@pytest.mark.parametrize(("table", "name", "condition"), [
    ("runs", "uq_runs_plan_name", "WHERE status IN ('pending', 'running')"),
    ("api_tokens", "uq_api_tokens_name", "WHERE revoked_at IS NULL"),
])
def test_an_index_of_some_rows_says_of_which(dialect: Dialect, table: str, name: str, condition: str) -> None:
    spell_conditions(dialect.name)
    index = next(each for each in METADATA.tables[table].indexes if each.name == name)
    said = str(CreateIndex(index).compile(dialect=dialect))
    assert said.startswith("CREATE UNIQUE INDEX") and said.endswith(condition)
