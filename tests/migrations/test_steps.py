"""Each step down leaves what a store of that revision has, and nothing besides; each step up from there is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import inspect

from migrations import run
from services.round_store.database.session import make_engine

REVISIONS = sorted(path.name[:4] for path in (Path(run.__file__).parent / "versions").glob("0*.py"))


def shape(url: str) -> dict[str, Any]:
    """Tables with their columns, keys and indexes."""
    engine = make_engine(url)
    found = inspect(engine)
    shapes = {
        table: {
            "columns": {each["name"]: (str(each["type"]), each["nullable"]) for each in found.get_columns(table)},
            "key": found.get_pk_constraint(table)["constrained_columns"],
            "references": sorted(str(each["constrained_columns"]) for each in found.get_foreign_keys(table)),
            "indexes": sorted((each["name"] or "", each["column_names"]) for each in found.get_indexes(table)),
        }
        for table in found.get_table_names()
    }
    engine.dispose()
    return shapes


def test_a_step_down_leaves_the_tables_of_its_revision(tmp_path: Path) -> None:
    """On SQLite, which makes a table anew where PostgreSQL alters it; what is taken away is the same on both."""
    url, on_the_way_up = f"sqlite:///{tmp_path}/steps.db", {}
    for revision in REVISIONS:
        assert run.upgrade(url, revision) == revision
        on_the_way_up[revision] = shape(url)
    assert REVISIONS[-1] == run.head()
    for revision in REVISIONS[-2::-1]:
        assert run.downgrade(url, revision) == revision
        assert shape(url) == on_the_way_up[revision], revision
    assert run.upgrade(url) == run.head() and shape(url) == on_the_way_up[run.head()]
