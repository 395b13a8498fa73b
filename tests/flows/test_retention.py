"""Prefect's history ends where the settings say."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prefect.exceptions import ObjectNotFound

from flows import retention
from flows.retention import forget_flow_runs, watch_retention
from services.contracts.errors import UnavailableError

NOW = datetime(2030, 5, 5, tzinfo=UTC)


class Client:
    def __init__(self, ages: list[int]) -> None:
        self.ended = {number: NOW - timedelta(days=age) for number, age in enumerate(ages)}

    async def read_flow_runs(self, *, flow_run_filter: Any, limit: int) -> list[Any]:
        before = flow_run_filter.end_time.before_
        return [SimpleNamespace(id=number) for number, at in self.ended.items() if at <= before][:2]

    async def delete_flow_run(self, number: int) -> None:
        del self.ended[number]
        if number == 1:
            raise ObjectNotFound(Exception())


class Stubborn(Client):
    """A server that says that it deletes, and deletes nothing."""

    asked = 0

    async def delete_flow_run(self, number: int) -> None:
        self.asked += 1
        assert self.asked < 10, "it is asked without end"


async def test_a_server_that_keeps_what_it_is_told_to_delete_is_asked_once() -> None:
    client: Any = Stubborn([100, 95, 91])
    assert await forget_flow_runs(client, 90, NOW) == 2
    assert client.asked == 2


async def test_flow_runs_that_ended_long_ago_go() -> None:
    client: Any = Client([100, 95, 91, 89, 0])
    assert await forget_flow_runs(client, None, NOW) == 0 and len(client.ended) == 5
    assert await forget_flow_runs(client, 90, NOW) == 2
    assert sorted(client.ended) == [3, 4]


@pytest.mark.parametrize("error", [httpx.ConnectError("away"), UnavailableError("away"), OSError("away")], ids=repr)
async def test_who_is_away_for_once_is_asked_again_the_next_day(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch ends the flows process where it ends."""
    asked, twice = list[int](), asyncio.Event()

    async def forget(*_: object) -> int:
        asked.append(len(asked))
        if len(asked) > 1:
            twice.set()
        raise error

    monkeypatch.setattr(retention, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(retention, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(retention, "tidy", lambda *_, **__: SimpleNamespace(runs=(), events=0, rounds=0))
    monkeypatch.setattr(retention, "forget_flow_runs", forget)
    kept = SimpleNamespace(retention=SimpleNamespace(prefect_days=90))
    context: Any = SimpleNamespace(store=None, settings=kept)
    watching = asyncio.create_task(watch_retention(context, Client([])))
    await asyncio.wait({watching, asyncio.create_task(twice.wait())}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
    assert twice.is_set() and not watching.done()
    watching.cancel()
