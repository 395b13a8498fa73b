"""What Alembic's comparison passes over: keys, defaults, and which rows an index is unique among; on both servers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import DefaultClause, Engine, Inspector, TextClause, inspect

from migrations import run
from services.contracts.errors import UnavailableError
from services.round_store.database.session import make_engine
from services.round_store.tables.all_tables import METADATA


@pytest.fixture
def found(database_url: str) -> Iterator[Inspector]:
    """What the server says of a database at the newest schema."""
    engine = make_engine(database_url)
    yield inspect(engine)
    engine.dispose()


def test_every_key_is_that_of_the_table(found: Inspector) -> None:
    for name, table in METADATA.tables.items():
        key = [column.name for column in table.primary_key.columns]
        assert found.get_pk_constraint(name)["constrained_columns"] == key, name


def test_what_a_table_gives_by_itself_the_server_gives_too(found: Inspector) -> None:
    """The server may give more: to rows that an older program writes."""
    stated = {}
    for name, table in METADATA.tables.items():
        for column in table.c:
            if isinstance(column.server_default, DefaultClause):
                (given,) = (each["default"] for each in found.get_columns(name) if each["name"] == column.name)
                stated[str(column)] = str(column.server_default.arg)
                assert re.findall(r"\w+", str(given))[:1] == [stated[str(column)]], column
    assert stated == {"site_updates.question": "0"}


def words(condition: object) -> list[str]:
    """What an index asks of a row, whichever way a server writes it."""
    return re.findall(r"'\w+'|IS (?:NOT )?NULL", str(condition))


def test_an_index_of_some_rows_is_unique_among_the_rows_that_the_table_says(found: Inspector) -> None:
    asked = {}
    for name, table in METADATA.tables.items():
        stored = {each["name"]: each.get("dialect_options", {}) for each in found.get_indexes(name)}
        for index in table.indexes:
            condition = index.info.get("condition")
            given = stored[index.name].get(f"{found.dialect.name}_where")
            assert isinstance(condition, TextClause) is (given is not None), index.name
            if condition is not None:
                asked[index.name] = words(given)
                assert words(given) == words(condition), index.name
    assert asked == {"uq_runs_plan_name": ["'pending'", "'running'"], "uq_api_tokens_name": ["IS NULL"]}


def test_who_asks_for_the_revision_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError):
        run.current(f"sqlite:///{tmp_path / 'none.db'}")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_a_percent_sign_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of Alembic put the values of others in the place of such signs."""
    monkeypatch.setattr(run, "__file__", "/opt/100%(here)s/migrations/run.py")
    assert run._config().get_main_option("script_location") == "/opt/100%(here)s/migrations"


def test_connections_are_given_back(new_sqlite: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Engine] = []

    def making(url: str, *, create: bool = False) -> Engine:
        opened.append(make_engine(url, create=create))
        return opened[-1]

    url = new_sqlite()
    monkeypatch.setattr(run, "make_engine", making)
    assert run.upgrade(url) == run.current(url) == run.head()
    unused = make_engine(url).pool.status()
    assert [engine.pool.status() for engine in opened] == [unused, unused]
