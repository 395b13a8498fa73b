"""The store of a simulated works: one real SQLite file a process, founded anew for each seed, and reads remembered.

A read gives what it gave before until something is committed to a table that its statements name, so the watcher's,
which looks once a second, are made once such a commit. A process that is dead still reads nothing, and whatever is held
to a clock is asked anew.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from migrations.run import upgrade
from services.round_store.database.session import Database, make_engine
from services.round_store.store import RoundStore
from services.round_store.tables.columns import Base
from tests.simulation.processes import Process

MEMORY = Path("/dev/shm")  # where it is, files that are forced to the disk cost nothing
TIMELESS = {
    "plans": ("get", "list_plans"), "leavings": ("due",), "sites": ("get", "list_sites"), "asset_types": ("get",),
    "runs": ("get_run", "is_cancelled", "unfinished_runs", "completed_before", "get_rounds"),
    "model_versions": ("models", "alias", "numbers", "list_versions"),
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


@lru_cache(maxsize=4096)
def tables_named(statement: str) -> tuple[bool, frozenset[str]]:
    """Whether a statement only reads, and the tables that it names; a column of a table's name counts as the table."""
    words = re.findall(r"\w+", statement)
    return words[:1] == ["SELECT"], frozenset(words) & Base.metadata.tables.keys()


@dataclass
class Remembered:
    """What was read, by whom it does not matter, with the tables of which it is; of a works.

    Whoever writes has the store's lock until it commits, so what was written since the last commit is of this one.
    """

    engine: Engine
    values: dict[Any, tuple[Any, frozenset[str]]] = field(default_factory=dict)
    _written: set[str] = field(default_factory=set)
    _reads: list[set[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        event.listen(self.engine, "before_cursor_execute", self._executing)

    def close(self) -> None:
        """Watch no statement any more."""
        event.remove(self.engine, "before_cursor_execute", self._executing)

    def forget(self) -> None:
        """Something was committed."""
        changed, self._written = self._written, set()
        for key in [key for key, (_, tables) in self.values.items() if not tables.isdisjoint(changed)]:
            del self.values[key]

    def store(self, database: Database, process: Process) -> RoundStore:
        """A store that asks the database once between two commits to the same tables."""
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
            return self._read(looked, lambda: stale(*arguments, **options))

        store.runs.stale_runs = stale_runs  # type: ignore[method-assign]
        return store

    def _reading(self, name: str, read: Callable[..., Any], process: Process) -> Callable[..., Any]:
        def remembered(*arguments: Any, **options: Any) -> Any:
            process.check()
            key = (name, arguments, tuple(options.items()))
            if key not in self.values:
                self._read(key, lambda: read(*arguments, **options))
            found, tables = self.values[key]
            if self._reads:  # it is a part of another read, which depends on the same tables
                self._reads[-1] |= tables
            return list(found) if isinstance(found, list) else found

        return remembered

    def _read(self, key: Any, read: Callable[[], Any]) -> Any:
        """What a read finds; it is kept with the tables that its statements name."""
        self._reads.append(set())
        try:
            found = read()
        finally:
            tables = self._reads.pop()
        self.values[key] = found, frozenset(tables)
        return found

    def _executing(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        only_reads, tables = tables_named(statement)
        if not only_reads:
            self._written |= tables
        elif self._reads:
            self._reads[-1] |= tables


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
