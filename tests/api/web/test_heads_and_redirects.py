"""HEAD has no body however an answer is sent, and of redirects the framework's alone lose their host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from starlette.types import Message

from api.web.addresses import REDIRECTED, Addresses


async def asked(method: str, *messages: Message, kind: str = "http") -> tuple[list[Message], list[str]]:
    """What is sent of an application that sends these messages, and the methods that it saw."""
    sent: list[Message] = []
    seen: list[str] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        seen.append(scope["method"])
        for message in messages:
            await send(message)

    async def keep(message: Message) -> None:
        sent.append(message)

    async def nothing() -> Message:
        return {"type": "http.request", "body": b""}

    await Addresses(app)({"type": kind, "method": method, "path": "/"}, nothing, keep)
    return sent, seen


def start(status: int = 200, *headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(*pieces: bytes) -> Sequence[Message]:
    return [{"type": "http.response.body", "body": each, "more_body": each is not pieces[-1]} for each in pieces]


@pytest.mark.parametrize("pieces", [(b"one",), (b"one", b"two", b"three")])
async def test_head_is_answered_as_get_is_with_one_end_and_no_body(pieces: tuple[bytes, ...]) -> None:
    messages = [start(200, (b"content-length", b"3")), *body(*pieces)]
    assert await asked("GET", *messages) == (messages, ["GET"])
    sent, seen = await asked("HEAD", *messages)
    assert seen == ["GET"] and sent == [messages[0], {"type": "http.response.body", "body": b""}]
    assert await asked("POST", *messages) == (messages, ["POST"])


@pytest.mark.parametrize(("location", "told"), [
    (b"http://10.0.0.7:8000/v1/runs", b"/v1/runs"), (b"/v1/runs", b"/v1/runs"),
    (b"http://inside/v1/runs?plan=a%20b&limit=2", b"/v1/runs?plan=a%20b&limit=2"),
])
async def test_the_frameworks_redirect_names_a_path_with_its_query_and_no_host(location: bytes, told: bytes) -> None:
    (first, *_), _ = await asked("GET", start(REDIRECTED, (b"location", location), (b"x-other", b"http://a/b")))
    assert first["headers"] == [(b"location", told), (b"x-other", b"http://a/b")]


@pytest.mark.parametrize("status", [303, 302, 201])
async def test_our_own_redirects_keep_their_host(status: int) -> None:
    """The way to an issuer is one of them."""
    location = (b"location", b"https://id.example.com/authorize?state=x")
    (told,), _ = await asked("GET", start(status, location))
    assert told["headers"] == [location]


async def test_what_is_no_request_passes() -> None:
    location = (b"location", b"http://a/b")
    (told,), seen = await asked("HEAD", start(REDIRECTED, location), kind="websocket")
    assert told["headers"] == [location] and seen == ["HEAD"]
