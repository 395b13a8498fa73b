"""The stream of events over real HTTP, and that the store writes what happens."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import update

from api.events import endpoints, feed
from api.web.sessions import COOKIE, Sessions
from services.contracts.access.identity import Role
from services.contracts.history.run import SiteTermsRecord
from services.round_store.tables.operation import EventRow
from services.round_store.tables.sites import SiteRow
from tests import versions
from tests.api.conftest import SITES, a_plan
from tests.waiting import PATIENCE, wait_until


class Stream:
    """Messages of a stream, one after another."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def next(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        quiet = 0
        for line in self._lines:
            quiet += line.startswith(":")
            assert quiet < 100, "nothing comes, and the stream does not end"
            name, _, value = line.partition(": ")
            if not line and "event" in found:  # else it says only how far the stream is
                return found
            if not line:
                found = {}
            if name in ("id", "event", "data"):
                found[name] = json.loads(value) if name == "data" else value
        return {}

    def take(self, count: int) -> list[dict[str, Any]]:
        return [self.next() for _ in range(count)]


@contextmanager
def following(world: Any, server: str, role: Role = Role.OPERATOR, last: int | str | None = None, **query: Any) -> Any:
    headers = {"Authorization": f"Bearer {world.tokens[role]}"}
    if last is not None:
        headers["Last-Event-ID"] = str(last)
    with httpx.Client(base_url=server, timeout=PATIENCE, headers=headers) as client:
        with client.stream("GET", "/v1/events", params=query) as answer:
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.headers["x-accel-buffering"] == "no", "a proxy would hold events back"
            lines = answer.iter_lines()
            assert next(lines) == ": following"
            yield Stream(lines)


def a_run(world: Any, name: str = "live") -> str:
    """A run that is begun, has a round in which a site is convicted and one refuses, and fails; its id."""
    store = world.backend.store
    run = store.runs.create_run(a_plan(name))
    store.runs.begin_run(run.run_id, ())
    answers = (
        versions.an_answer(SITES[0]).model_copy(update={
            "status": "excluded", "code": "contradiction", "reason": f"{SITES[0]} contradicts itself"}),
        versions.an_answer(SITES[1]).model_copy(update={"status": "refused_by_site", "code": "exposure_limit"}),
    )
    record = versions.a_round(run.run_id, 1, *answers, upper=1.0, lower=-np.inf, gap=np.inf)
    store.runs.commit_round(record, {"weights": np.zeros(2)})
    store.runs.finish_run(run.run_id, "failed", "too few sites")
    return str(run.run_id)


KINDS = ["run.begun", "run.round", "site.convicted", "exposure.refused", "run.failed"]


def test_what_happens_is_told_as_it_happens(world: Any, server: str) -> None:
    with following(world, server) as stream:
        run_id = a_run(world)
        told = stream.take(5)
    assert [each["event"] for each in told] == KINDS
    assert [each["data"]["number"] for each in told] == [int(each["id"]) for each in told]
    assert {each["data"]["run_id"] for each in told} == {run_id}
    assert (told[1]["data"]["round"], told[1]["data"]["gap"], told[1]["data"]["upper"]) == (1, "Infinity", 1.0)
    assert told[2]["data"]["site_id"] == SITES[0] and told[4]["data"]["reason"] == "too few sites"


def test_who_was_cut_goes_on_where_it_was(world: Any, server: str) -> None:
    a_run(world)
    numbers = [event.number for event in world.backend.store.events.after(0)]
    with following(world, server, last=numbers[-4]) as stream:
        assert [int(each["id"]) for each in stream.take(3)] == numbers[-3:]
        a_run(world, "later")
        assert [each["event"] for each in stream.take(5)] == KINDS, "none twice, none left out"
    with following(world, server, after=numbers[-2], kind=["run.failed"], plan="live") as stream:
        assert stream.next()["data"]["number"] == numbers[-1]


def test_an_empty_number_is_none(world: Any, server: str) -> None:
    a_run(world)
    numbers = [event.number for event in world.backend.store.events.after(0)]
    with following(world, server, last="", after=numbers[-2]) as stream:
        assert stream.next()["data"]["number"] == numbers[-1], "the query's number holds"
    with following(world, server, last="") as stream:
        a_run(world, "later")
        assert [each["event"] for each in stream.take(5)] == KINDS, "from now on"
    headers = {"Authorization": f"Bearer {world.tokens[Role.OPERATOR]}", "Last-Event-ID": "x"}
    assert httpx.get(f"{server}/v1/events", headers=headers, timeout=PATIENCE).status_code == 422


def test_who_comes_too_late_is_told_that_events_are_missing(world: Any, server: str) -> None:
    a_run(world)
    with world.backend.store.database.write() as session:
        oldest = world.backend.store.events.after(0)[2].number
        session.query(EventRow).filter(EventRow.number < oldest).delete()
    with following(world, server, last=0) as stream:
        assert stream.next()["event"] == "events.lost"
        assert int(stream.next()["id"]) == oldest
    with following(world, server, last=10**9) as stream:
        assert stream.next()["event"] == "events.lost", "of another database"


def test_readings_that_have_moved_far_are_told_and_others_are_not(world: Any) -> None:
    store = world.backend.store
    run = store.runs.create_run(a_plan("moved"))
    terms = [
        SiteTermsRecord(site_id=site, weight=0.5, radius=0.1, n_samples=30, radius_is_estimate=False, drift=drift)
        for site, drift in ((SITES[0], 0.19), (SITES[1], 0.2))
    ]
    store.runs.begin_run(run.run_id, terms)
    found = [each for each in store.events.after(0) if each.kind == "site.drifted"]
    assert [(each.site_id, each.drift, each.run_id) for each in found] == [(SITES[1], 0.2, run.run_id)]


def test_viewers_see_pseudonyms_and_no_plant(world: Any, server: str, new_key: Callable[[], str]) -> None:
    with following(world, server, Role.VIEWER) as stream:
        world.backend.store.sites.connected([SITES[0]])
        a_run(world)
        told = stream.take(5)
    assert [each["event"] for each in told] == KINDS, "that a plant is back is of no model"
    text = json.dumps(told)
    assert not any(site in text for site in SITES)
    assert told[2]["data"]["site_id"] == world.backend.pseudonyms.name("live", SITES[0])
    assert told[2]["data"]["site_id"] in told[2]["data"]["reason"]


def test_a_stream_ends_with_its_token(world: Any, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "QUIET_SECONDS", 0.05)
    with following(world, server) as stream:
        token_id = world.tokens[Role.OPERATOR].split("_")[1]
        world.backend.store.tokens.revoke(token_id)
        assert stream.next() == {}


def test_a_stream_that_is_never_quiet_ends_with_its_token_too(
    world: Any, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "QUIET_SECONDS", 1.0)
    stop = threading.Event()

    def go_on() -> None:
        while not stop.is_set():
            a_run(world)
            stop.wait(0.2)

    busy = threading.Thread(target=go_on)
    with following(world, server, kind=["run.failed"]) as stream:
        busy.start()
        try:
            assert stream.next()["event"] == "run.failed"
            world.backend.store.tokens.revoke(world.tokens[Role.OPERATOR].split("_")[1])
            told = list(islice(iter(stream.next, {}), 30))
        finally:
            stop.set()
            busy.join(PATIENCE)
    assert len(told) < 30, "it ends while events go on"


def test_a_stream_of_a_session_holds_as_long_as_the_session(
    world: Any, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "QUIET_SECONDS", 0.05)
    store = world.backend.store
    token_id = world.tokens[Role.OPERATOR].split("_")[1]
    sessions = Sessions(store)
    secret = sessions.begin(store.tokens.find(token_id).token)
    with httpx.Client(base_url=server, timeout=PATIENCE, headers={"Cookie": f"{COOKIE}={secret}"}) as client:
        with client.stream("GET", "/v1/events") as answer:
            lines = (line for line in answer.iter_lines() if line.startswith(":"))
            assert [next(lines) for _ in range(4)] == [": following", *[": still here"] * 3]
            sessions.end(secret)
            assert len(list(islice(lines, 50))) < 50


def test_one_follower_too_many_is_told_so_and_takes_no_place(
    world: Any, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MOST_FOLLOWERS", 1)
    headers = {"Authorization": f"Bearer {world.tokens[Role.OPERATOR]}"}
    with following(world, server):
        with httpx.stream("GET", f"{server}/v1/events", headers=headers, timeout=PATIENCE) as refused:
            assert refused.status_code == 503 and refused.headers["retry-after"] == "5"
            assert json.loads(refused.read())["code"] == "unavailable"
    deadline, status = time.monotonic() + PATIENCE, 503
    while status == 503 and time.monotonic() < deadline:  # until the server has noticed who is gone
        with httpx.stream("GET", f"{server}/v1/events", headers=headers, timeout=PATIENCE) as again:
            status = again.status_code
    assert status == 200, "who is gone leaves the place"


def test_one_reader_reads_for_all(world: Any, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    returned: list[int] = []
    whole = feed.Feed.read

    def counted(self: Any, number: int) -> Any:
        found = whole(self, number)
        returned.extend(told.event.number for told in found)
        return found

    with following(world, server) as one, following(world, server) as two, following(world, server) as three:
        a_run(world)
        assert one.take(5) == two.take(5) == three.take(5)  # each has caught up
        monkeypatch.setattr(feed.Feed, "read", counted)
        a_run(world, "next")
        assert one.take(5) == two.take(5) == three.take(5)
    assert 5 <= len(returned) < 10, "once for all, not once for each"


async def test_who_is_too_slow_is_let_go() -> None:
    follower = feed.Follower()
    for _ in range(feed.WAITING + 5):
        feed._hand(follower, feed.Told(None, None))  # type: ignore[arg-type]
    assert follower.lost and follower.queue.qsize() == feed.WAITING + 1
    last = [await follower.queue.get() for _ in range(feed.WAITING + 1)][-1]
    assert last is None


def test_gates_champions_and_plants_are_told(any_world: Any) -> None:
    store = any_world.backend.store
    before = store.events.span()[1]
    version = any_world.new_model("told", 0.9)[0]
    store.model_versions.set_status("told", version, "gates_failed", "max_gap: 2e-3 over 1e-3")
    store.model_versions.record_alias("told", "challenger", version, "x", "new")
    store.model_versions.record_alias("told", "champion", version, "x", "better")
    store.sites.connected([SITES[0]])
    store.sites.connected([SITES[0]])
    with store.database.write() as session:
        session.execute(update(SiteRow).values(last_seen=datetime.now(UTC) - timedelta(minutes=2)))
    for _ in range(2):
        store.sites.connected([SITES[1]])
    store.sites.seen(SITES[0], "1.0")
    told = [event for event in store.events.after(before) if not event.kind.startswith("run.")]
    assert [(event.kind, event.site_id or event.version) for event in told] == [
        ("gate.refused", version), ("model.promoted", version), ("site.back", SITES[0]), ("site.silent", SITES[0]),
        ("site.back", SITES[0]),
    ]
    assert told[0].reason.startswith("max_gap") and told[2].reason == "for the first time"


def test_numbers_are_in_the_order_of_commits(any_world: Any) -> None:
    """A reader that has seen a number has seen all below it, whoever writes at the same time."""
    store = any_world.backend.store
    runs = [store.runs.create_run(a_plan(f"plan-{number}")).run_id for number in range(6)]
    stop, seen = threading.Event(), []

    def read() -> None:
        last = 0
        while not stop.is_set():
            for event in store.events.after(last):
                seen.append(event.number)
                last = event.number

    async def write() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*[loop.run_in_executor(None, store.runs.begin_run, run, ()) for run in runs])

    reader = threading.Thread(target=read)
    reader.start()
    asyncio.run(write())
    numbers = [event.number for event in store.events.after(0)]
    wait_until(lambda: seen[-1:] == numbers[-1:], "last event")
    stop.set()
    reader.join(PATIENCE)
    assert seen == sorted(seen) == numbers
