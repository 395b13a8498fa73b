"""The mark changes with every commit, whoever makes it, and with nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sqlalchemy.engine import make_url

from services.contracts.machines.asset_type import AssetType
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
