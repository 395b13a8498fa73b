"""MLflow's store is opened by one process at a time, in files of its owner alone, and told at once where it is down."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.pool import NullPool

from services.contracts.errors import UnavailableError
from services.registry.store_lock import ADVISORY_LOCK, opening


def locked(path: Path) -> bool:
    """Whether somebody holds the lock of a file, and shares it with nobody."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_an_sqlite_store_is_held_while_it_is_opened_and_let_go_whatever_happens(tmp_path: Path) -> None:
    lock = tmp_path / "new" / "mlflow.db.lock"
    with pytest.raises(RuntimeError), opening(f"sqlite:///{tmp_path}/new/mlflow.db"):
        assert locked(lock)
        raise RuntimeError("MLflow could not make its tables")
    assert not locked(lock)
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in lock.parent.iterdir()} == {
        "mlflow.db": "0o600", "mlflow.db.lock": "0o600",
    }


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:", "http://127.0.0.1:1", "https://127.0.0.1:1"])
def test_a_store_in_memory_or_behind_a_server_leaves_no_files(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opening(address):
        assert list(tmp_path.iterdir()) == []


def test_a_driver_that_is_not_there_is_named_and_the_address_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

    monkeypatch.setattr(sqlalchemy, "create_engine", missing)
    with pytest.raises(UnavailableError) as said, opening("postgresql+psycopg://u:hunter2@db/mlflow"):
        raise AssertionError("it cannot be open")
    assert "no driver psycopg" in str(said.value) and "hunter2" not in str(said.value)


def test_a_postgresql_store_is_locked_by_its_session_outside_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []

    @contextmanager
    def connect() -> Any:
        yield SimpleNamespace(
            execute=lambda statement, values: done.append((str(statement), values)),
            commit=lambda: done.append("commit"),
        )
        done.append("closed")

    def engine(_: object, **options: object) -> Any:
        done.append(options)
        return SimpleNamespace(connect=connect)

    monkeypatch.setattr(sqlalchemy, "create_engine", engine)
    with opening("postgresql+psycopg://u@db/mlflow"):
        done.append("open")
    lock = ("SELECT pg_advisory_lock(:key)", {"key": ADVISORY_LOCK})
    assert done == [{"poolclass": NullPool, "connect_args": {"connect_timeout": 5}}, lock, "commit", "open", "closed"]
