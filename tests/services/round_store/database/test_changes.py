"""The mark changes with every commit, whoever makes it, and with nothing else."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sqlalchemy.engine import make_url

from services.contracts.machines.asset_type import AssetType
from services.round_store.database.changes import ChangeMark
from services.round_store.store import RoundStore


def test_a_commit_by_anybody_changes_the_mark_and_reading_does_not(
    new_sqlite: Callable[[], str], asset_type: AssetType
) -> None:
    url = new_sqlite()
    store, other = RoundStore.open(url), RoundStore.open(url)
    first = store.changes.read()
    assert first is not None and store.changes.read() == first
    store.asset_types.list_asset_types()
    assert store.changes.read() == first, "nothing was written"
    store.asset_types.add(asset_type)
    second = store.changes.read()
    assert second not in (None, first), "this store wrote"
    other.asset_types.add(asset_type.model_copy(update={"name": "other"}))
    third = store.changes.read()
    assert third not in (None, first, second), "another store wrote"
    path = str(make_url(url).database)
    program = f"import sqlite3; c = sqlite3.connect({path!r}); c.execute('CREATE TABLE extra (x)'); c.commit()"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert store.changes.read() not in (None, first, second, third), "another process wrote"
    other.close()
    store.close()
    assert store.changes.read() is None


def test_marks_of_two_connections_are_never_the_same(new_sqlite: Callable[[], str]) -> None:
    store = RoundStore.open(new_sqlite())
    first = store.changes.read()
    store.changes._drop()
    second = store.changes.read()
    assert None not in (first, second) and first != second
    store.close()


def test_a_server_that_cannot_tell_gives_no_mark(database_url: str, tmp_path: Path) -> None:
    store = RoundStore.open(database_url)
    assert (store.changes.read() is None) == (store.engine.dialect.name == "postgresql")
    store.close()


def test_a_file_that_is_gone_or_is_none_gives_no_mark_and_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "gone.db"
    mark = ChangeMark(make_url(f"sqlite:///file:{path}"))
    assert mark.read() is None and not path.exists()
    path.write_text("no database, and longer than the hundred bytes that the head of one has" * 20)
    assert mark.read() is None
    path.unlink()
    sqlite3.connect(path).close()
    assert mark.read() is not None
    mark.close()


def test_a_file_that_one_has_for_itself_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "held.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE one (x)")
    mark = ChangeMark(make_url(f"sqlite:///file:{path}"))
    assert mark.read() is not None
    holder.execute("BEGIN EXCLUSIVE")
    assert mark.read() is None
    holder.close()
    assert mark.read() is not None
    assert mark._connection is not None
    assert mark._connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
    mark.close()
