"""Disks that fail: the store's database under a process, and the files of a plant's ledger.

The database is a real SQLite file on a memory file system. A transaction may find it locked or full, or its process may
die before or after the commit. Of a ledger's file what was not forced to the disk may be lost when the power goes, and
a line may get there in part.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from services.round_store.database.session import Database
from tests.simulation.processes import CURRENT, Process, ProcessKilled
from tests.simulation.world import World


@dataclass
class StoreFaults:
    """How likely a writing transaction fails, by kind; none once the faults are over."""

    draw: random.Random
    locked: float = 0.0
    full: float = 0.0
    crash_before: float = 0.0
    crash_after: float = 0.0
    until: float = 0.0

    def drawn(self, now: float) -> str:
        """What happens to a transaction; empty: nothing."""
        if now >= self.until:
            return ""
        left = self.draw.random()
        for kind in ("locked", "full", "crash_before", "crash_after"):
            left -= getattr(self, kind)
            if left < 0:
                return kind
        return ""


class SimulatedDatabase(Database):
    """The store's transactions as one process makes them; ``committed`` is told of every commit."""

    def __init__(
        self, engine: Engine, world: World, process: Process, faults: StoreFaults | None,
        committed: Callable[[Process], None],
    ) -> None:
        super().__init__(engine)
        self._world, self._process, self._faults, self._committed = world, process, faults, committed

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """As of the product; a dead process reads nothing."""
        self._process.check()
        with super().read() as session:
            yield session

    @contextlib.contextmanager
    def write(self) -> Iterator[Session]:
        """As of the product, with what may happen to a transaction."""
        self._process.check()
        fault = self._faults.drawn(self._world.loop.time()) if self._faults is not None else ""
        if fault:
            self._world.fault(f"store {fault.replace('_', ' ')}", self._process.name)
        with super().write() as session:
            if fault == "locked":
                raise _sqlite_error("database is locked", sqlite3.SQLITE_BUSY)
            yield session
            session.flush()
            if fault == "full":
                raise _sqlite_error("database or disk is full", sqlite3.SQLITE_FULL)
            if fault == "crash_before":
                self._die()
        self._world.note(f"commit {self._process.name}")
        self._committed(self._process)
        if fault == "crash_after":
            self._die()

    def close(self) -> None:
        """The engine is everybody's."""

    def _die(self) -> None:
        self._process.kill()
        raise ProcessKilled(self._process.name)


def _sqlite_error(message: str, code: int) -> OperationalError:
    cause = sqlite3.OperationalError(message)
    cause.sqlite_errorcode = code
    return OperationalError(message, None, cause)


@dataclass
class LedgerFaults:
    """How likely a line of a ledger gets to the disk in part, or not at all."""

    draw: random.Random
    torn: float = 0.0
    full: float = 0.0
    until: float = 0.0


@dataclass
class LedgerOs:
    """What the ledger knows as ``os``: real files, of which the unforced end is lost with the power."""

    world: World
    faults: dict[str, LedgerFaults] = field(default_factory=dict)
    paths: dict[int, str] = field(default_factory=dict)
    forced: dict[str, int] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        """Open, and remember what is on the disk by now."""
        descriptor = os.open(path, flags, mode)
        self.paths[descriptor] = str(path)
        self.forced.setdefault(str(path), os.fstat(descriptor).st_size)
        return descriptor

    def close(self, descriptor: int) -> None:
        """Close."""
        self.paths.pop(descriptor, None)
        os.close(descriptor)

    def write(self, descriptor: int, line: bytes) -> int:
        """Write a line; the disk may be full, or the process may die in the middle of it."""
        process = CURRENT.get()
        if process is not None:
            process.check()
        faults = self.faults.get(process.name if process else "")
        if process is None or faults is None or self.world.loop.time() >= faults.until:
            return os.write(descriptor, line)
        chance = faults.draw.random()
        if chance < faults.torn:
            self.world.fault("ledger torn", process.name)
            os.write(descriptor, line[: faults.draw.randrange(len(line))])
            process.kill()
            raise ProcessKilled(process.name)
        if chance < faults.torn + faults.full:
            self.world.fault("ledger full", process.name)
            raise OSError(28, "No space left on device")
        return os.write(descriptor, line)

    def fsync(self, descriptor: int) -> None:
        """Force a file to the disk."""
        path = self.paths.get(descriptor)
        if path is not None:
            self.forced[path] = os.fstat(descriptor).st_size

    def power_cut(self, path: str, draw: random.Random) -> None:
        """Lose a part of what was not forced; all that was forced stays."""
        size, safe = os.path.getsize(path), self.forced.get(path, 0)
        if size > safe:
            os.truncate(path, draw.randint(safe, size))
