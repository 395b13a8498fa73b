"""Prefect's history ends where the settings say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from prefect.exceptions import ObjectNotFound

from flows.retention import forget_flow_runs

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
