"""The events as the client follows them: a stream that is cut goes on where it was, also before its first event."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message
from io import BytesIO
from typing import Any

import pytest

from api.client import Client, EventsLostError, ServerError
from services.contracts.access.identity import Role
from services.contracts.history.events import Event
from tests.api.conftest import SITES, a_plan


def test_events_go_on_where_the_stream_was_cut(
    world: Any, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.backend.store.runs.create_run(a_plan("pumps", sites=SITES), "1" * 32)
    world.backend.store.runs.finish_run("1" * 32, "cancelled", "a test")
    asked: list[int] = []

    def token() -> str:
        asked.append(1)
        return str(world.tokens[Role.OPERATOR])

    client = Client(server, token, sleep=lambda _: None)
    first: list[Event] = []
    for event in client.events(after=0):
        first.append(event)
        if event.kind == "run.cancelled":
            break
    assert [event.number for event in first] == sorted({event.number for event in first})
    assert len(asked) == 1
    cut = client._stream
    streams = 0

    def short(path: str, last: int | None) -> Iterator[tuple[int, Event | None]]:
        nonlocal streams
        streams += 1
        for told in cut(path, last):  # each connection ends after one event
            yield told
            if told[1] is not None:
                return

    monkeypatch.setattr(client, "_stream", short)
    numbers = []
    for event in client.events(after=0):
        numbers.append(event.number)
        if len(numbers) == len(first):
            break
    assert numbers == [event.number for event in first] and streams == len(first)
    with pytest.raises(EventsLostError):
        next(Client(server, token).events(after=10**6))


def test_what_happens_while_a_stream_is_cut_before_its_first_event_is_told_all_the_same(
    world: Any, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(server, world.tokens[Role.OPERATOR], sleep=lambda _: None)
    whole, cuts = client._stream, list[int | None]()

    def cut_once(path: str, last: int | None) -> Iterator[tuple[int, Event | None]]:
        cuts.append(last)
        if len(cuts) > 1:
            assert last is not None, "it waits for what has happened already"
            yield from whole(path, last)
            return
        yield next(whole(path, last))
        world.backend.store.runs.create_run(a_plan("pumps", sites=SITES), "3" * 32)
        world.backend.store.runs.finish_run("3" * 32, "cancelled", "a test")

    monkeypatch.setattr(client, "_stream", cut_once)
    event = next(client.events("run.cancelled", plan="pumps"))
    assert event.run_id == "3" * 32 and cuts == [None, event.number - 1]


class Told(BytesIO):
    """A stream of events, as it is read."""

    headers = Message()
    headers["Content-Type"] = "text/event-stream"


@pytest.mark.parametrize("text", [
    "id: x\nevent: run.begun\ndata: {}", "id: 7\nevent: events.lost", "id: 1\ndata: {", "id: \ndata: {}",
    "id: 2\ndata: " + "[" * 100_000, "id: " + "9" * 5000, "id: 3\ndata: {}", "id: 3\ndata: null",
    "id: y\nevent: events.lost",
])
def test_a_stream_with_an_event_that_cannot_be_read_is_an_error_of_the_server(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(_: float) -> None:
        raise AssertionError("the stream is asked for once more")

    client = Client("http://127.0.0.1:1", "blst_", sleep=again)
    monkeypatch.setattr(client._http, "open", lambda *_: Told(f"id: 6\n\n{text}\n\n".encode()))
    with pytest.raises(EventsLostError if text.startswith("id: 7") else ServerError) as found:
        next(client.events())
    assert "\n" not in str(found.value) and len(str(found.value)) < 300
