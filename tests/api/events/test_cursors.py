"""Where a stream goes on: nothing twice, nothing left out, and "lost" only where something is."""

from __future__ import annotations

import asyncio
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from api.events import endpoints, feed
from services.round_store.operation.events import note
from services.round_store.tables.operation import EventRow
from tests.api.events.test_stream import a_run, following
from tests.waiting import PATIENCE


def test_nothing_is_lost_where_the_next_event_is_the_oldest_or_there_is_none_yet(
    world: Any, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "QUIET_SECONDS", 0.2)  # what should come and does not is noticed
    a_run(world)
    with world.backend.store.database.write() as session:
        oldest = world.backend.store.events.after(0)[2].number
        session.query(EventRow).filter(EventRow.number < oldest).delete()
    newest = world.backend.store.events.span()[1]
    with following(world, server, last=oldest - 1) as stream:
        assert int(stream.next()["id"]) == oldest, "all after the one before it are there"
    with following(world, server, last=oldest - 2) as stream:
        lost, first = stream.take(2)
    assert (lost["event"], int(lost["id"]), int(first["id"])) == ("events.lost", oldest - 1, oldest)
    with following(world, server, last=newest) as stream:
        a_run(world, "later")
        assert int(stream.next()["id"]) == newest + 1, "who has the newest has lost nothing"
    with following(world, server, last=newest, after=0, kind=["run.begun"]) as stream:
        assert int(stream.next()["id"]) > newest, "the header is what a browser knows of last"
    with following(world, server, last=world.backend.store.events.span()[1] + 1) as stream:
        assert stream.next()["event"] == "events.lost", "of another database"


async def test_an_event_that_was_read_already_is_not_told_again(world: Any) -> None:
    a_run(world)
    told = feed.Feed(world.backend).read(0)
    follower = feed.Follower()
    for each in (*told[-2:], None):
        follower.queue.put_nowait(each)
    request: Any = SimpleNamespace(app=world.app)
    caller: Any = SimpleNamespace(sees_site_names=True, session="")
    last, newest = told[-3].event.number, told[-1].event.number
    texts = endpoints._texts(
        request, feed.Feed(world.backend), caller, last, lambda _: True, follower, newest
    )
    ids = [text.partition("\n")[0] async for text in texts]
    assert ids == [": following", *(f"id: {each.event.number}" for each in told[-2:])]


async def test_what_happened_while_nobody_followed_is_not_handed_out_as_new(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of it than may wait for a follower would end its stream as that of one who is too slow."""
    monkeypatch.setattr(feed, "WAITING", 3)
    monkeypatch.setattr(feed, "LOOK_SECONDS", 0.01)
    for name in ("one", "two", "three"):
        await asyncio.to_thread(a_run, world, name)
    told = feed.Feed(world.backend)
    reader = asyncio.create_task(told.run())
    follower, newest = await told.follow()
    with world.backend.store.database.write() as session:
        note(session, "model.promoted", plan="later", version="1")
    first = await asyncio.wait_for(follower.queue.get(), PATIENCE)
    reader.cancel()
    assert newest > 3 and not follower.lost and first is not None and first.event.number == newest + 1


def test_who_is_cut_before_his_first_event_knows_where_to_go_on(
    world: Any, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser sends back the last ``id`` that it had, also one that came without an event."""
    monkeypatch.setattr(endpoints, "QUIET_SECONDS", 0.2)

    def place(stream: Any) -> int:
        line = next(line for line in stream._lines if line)
        assert line.startswith("id: "), line
        return int(line.removeprefix("id: "))

    a_run(world)
    with following(world, server, kind=["run.completed"]) as stream:
        began = place(stream)
        a_run(world, "later")
        newest = world.backend.store.events.span()[1]
        places = islice((line for line in stream._lines if line.startswith("id: ")), 50)
        now = next((line for line in places if line != f"id: {began}"), None)
    assert began < newest and now == f"id: {newest}", "what is passed over is not missed afterwards"
    with following(world, server, last=began, kind=["run.failed"]) as stream:
        assert stream.next()["data"]["plan"] == "later"
