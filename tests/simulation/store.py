"""The store of a simulated works: one real SQLite file a process, founded anew for each seed, and reads remembered.

Between two commits a read gives what it gave before, so the watcher's, which looks once a second, are made once a
commit. A process that is dead still reads nothing, and whatever is held to a clock is asked anew.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from migrations.run import upgrade
from services.round_store.session import Database, make_engine
from services.round_store.store import RoundStore
from tests.simulation.processes import Process

MEMORY = Path("/dev/shm")  # where it is, files that are forced to the disk cost nothing
TIMELESS = {
    "plans": ("get", "list_plans"), "leavings": ("due",), "sites": ("get", "list_sites"), "asset_types": ("get",),
    "runs": ("get_run", "unfinished_runs", "completed_before", "get_rounds"),
    "model_versions": ("models", "alias", "list_versions"),
}
"""Reads that the rows alone decide, by repository."""


def founded() -> tuple[Engine, Path]:
    """An empty store at the newest schema, on the engine that this process keeps: its statements stay compiled."""
    engine, path = _kept(os.getpid())
    engine.dispose()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(_template(), path)
    return engine, path


@dataclass
class Remembered:
    """What was read since the last commit of anybody in a works."""

    values: dict[Any, Any] = field(default_factory=dict)

    def forget(self) -> None:
        """Something was committed."""
        self.values.clear()

    def store(self, database: Database, process: Process) -> RoundStore:
        """A store that asks the database once between two commits."""
        store = RoundStore(database)
        for name, methods in TIMELESS.items():
            repository = getattr(store, name)
            for method in methods:
                setattr(repository, method, self._reading(f"{name}.{method}", getattr(repository, method), process))
        stale, unfinished = store.runs.stale_runs, store.runs.unfinished_runs

        def stale_runs(*arguments: Any, **options: Any) -> Any:
            # Which of the unfinished runs nobody drives the clock decides; where there are none it has nothing to say.
            looked = ("runs.stale_runs", arguments, tuple(options.items()))
            if looked in self.values and not unfinished():
                return []
            self.values[looked] = True
            return stale(*arguments, **options)

        store.runs.stale_runs = stale_runs  # type: ignore[method-assign]
        return store

    def _reading(self, name: str, read: Callable[..., Any], process: Process) -> Callable[..., Any]:
        def remembered(*arguments: Any, **options: Any) -> Any:
            process.check()
            key = (name, arguments, tuple(options.items()))
            if key not in self.values:
                self.values[key] = read(*arguments, **options)
            found = self.values[key]
            return list(found) if isinstance(found, list) else found

        return remembered


@lru_cache(maxsize=1)
def _kept(process_id: int) -> tuple[Engine, Path]:
    """Engine and file of a process; after a fork there is another."""
    folder = temporary("simulated-store-")
    _FOLDERS.append(folder)
    path = Path(folder.name) / "store.db"
    return make_engine(f"sqlite:///{path}"), path


@lru_cache(maxsize=1)
def _template() -> Path:
    """A store at the newest schema; it is made once a process."""
    folder = temporary("simulated-template-")
    _FOLDERS.append(folder)
    path = Path(folder.name) / "template.db"
    upgrade(f"sqlite:///{path}")
    return path


def temporary(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """A folder in memory where there is one."""
    return tempfile.TemporaryDirectory(prefix=prefix, dir=MEMORY if MEMORY.is_dir() else None)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
