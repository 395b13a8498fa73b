"""The flows process shows that it is at work, whatever it finds away."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows import runner
from flows.runner import Watcher
from services.contracts.errors import UnavailableError
from services.process.process_lock import held, idle_seconds


async def test_who_looks_shows_life_also_where_the_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, ages = tmp_path / "flows.lock", list[float]()

    async def look() -> None:
        ages.append(idle_seconds(lock))
        os.utime(lock, (0, 0))
        if len(ages) == 3:
            raise asyncio.CancelledError
        raise UnavailableError("the database is away")

    monkeypatch.setattr(runner, "WATCH_SECONDS", 0.0)
    context: Any = SimpleNamespace(settings=SimpleNamespace(flows_lock=lock), store=None)
    nothing: Any = None
    watcher = Watcher(context, nothing, nothing)
    monkeypatch.setattr(watcher, "reconcile", look)
    with held(lock):
        os.utime(lock, (0, 0))
        with pytest.raises(asyncio.CancelledError):
            await watcher.watch()
    assert len(ages) == 3 and max(ages) < 3600
