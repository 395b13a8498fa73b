"""Who is there, by real links over a real server: connected, silent, never; and two agents under one key."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flows import roll_call
from flows.roll_call import SEVERAL, RollCall
from services.contracts.history.site import Site
from services.contracts.wire.messages import Hello
from services.site_agent.connection.link import PlantLink
from tests.waiting import PATIENCE

SITE = "plant-1"


@asynccontextmanager
async def agent(works: Any, site: str = SITE) -> AsyncIterator[None]:
    """An agent's link, with an instance of its own."""
    stop, hello = asyncio.Event(), Hello(site_id=site, version="test", instance=os.urandom(8).hex())
    link = PlantLink(works.addresses[site], works.doors[site].answer, lambda: works.egress[site].release(hello))
    running = asyncio.create_task(link.run(stop))
    try:
        yield
    finally:
        stop.set()
        await running


async def until(holds: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(PATIENCE / 6):
        while not holds():
            await asyncio.sleep(0.05)
    assert holds(), what


@asynccontextmanager
async def watching(works: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RollCall]:
    monkeypatch.setattr(roll_call, "LOOK_SECONDS", 0.5)
    async with works.context.plant_link() as transport:
        calls = RollCall(works.context, transport)
        await calls.listen()
        watch = asyncio.create_task(calls.watch())
        try:
            yield calls
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)


async def test_a_plant_is_connected_for_as_long_as_it_is(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(site: str = SITE) -> datetime | None:
        return works.context.store.sites.get(site).last_seen

    async with watching(works, monkeypatch):
        async with agent(works):
            await until(lambda: seen() is not None, "hello")
            first = seen()
            await until(lambda: seen() > first + timedelta(seconds=1), "a later look, without a word of the agent")
        await asyncio.sleep(1.0)  # a look that was on its way
        last = seen()
        await asyncio.sleep(2.5)
        assert seen() == last and seen("plant-3") is None
    hellos = works.egress[SITE]._ledger._path.read_text().count('"hello"')
    assert hellos <= 3, "at the connection and when the roll was called: a look leaves no line in the ledger"


async def test_a_second_agent_under_the_same_key_is_noticed_and_both_are_told(
    works: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def site() -> Site:
        return works.context.store.sites.get("plant-2")

    async with watching(works, monkeypatch), agent(works, "plant-2"):
        await until(lambda: site().last_seen is not None, "hello")
        async with agent(works, "plant-2"):
            await until(lambda: site().notice == SEVERAL, "notice")
            await until(lambda: caplog.text.count("another agent answers under this site's key") >= 2, "word to both")
        await until(lambda: site().notice == "", "end of the notice")
    events = works.context.store.audit.list_events(target="site:plant-2")
    assert [(event.action, event.reason) for event in events] == [
        ("site.one_agent", "one agent answers under its key again"), ("site.second_agent", SEVERAL),
    ]


async def test_two_agents_that_were_there_before_are_noticed_too(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with agent(works, "plant-3"), agent(works, "plant-3"):
        await asyncio.sleep(1.0)
        async with watching(works, monkeypatch):
            await until(lambda: works.context.store.sites.get("plant-3").notice != "", "notice")


@pytest.mark.parametrize(("age", "said"), [
    (None, "never"), (5, "connected"), (30, "connected"), (31, "silent for 31 s"), (300, "silent for 5 min"),
    (7200, "silent for 2 h"), (200_000, "silent for 2 d"),
])
def test_how_long_a_plant_is_silent(age: float | None, said: str) -> None:
    now = datetime(2031, 1, 1, tzinfo=UTC)
    last = None if age is None else now - timedelta(seconds=age)
    site = Site(site_id="a", public_key="U", enrolled_at=now, updated_at=now, last_seen=last)
    assert site.presence(now) == said


async def test_agents_that_come_and_go_write_no_entry_for_each_of_their_numbers(works: Any) -> None:
    def written() -> list[str]:
        return [event.action for event in works.context.store.audit.list_events(target=f"site:{SITE}")]

    async with works.context.plant_link() as transport:
        calls, before = RollCall(works.context, transport), written()
        for agents in (2, 3, 2, 7, 3, 1):
            await asyncio.to_thread(calls.counted, SITE, agents)
    assert written() == ["site.one_agent", "site.second_agent", *before]
    assert works.context.store.sites.get(SITE).notice == ""
