"""Problem documents below ``/v2`` become the protocol's errors, whoever made them; everything else passes as it was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from starlette.types import Message

from api.web.protocol_errors import ProtocolErrors

PROBLEM = (b"content-type", b"application/problem+json")
PLAIN = (b"content-type", b"application/json")


async def asked(
    messages: Iterable[Message | Exception], path: str = "/v2/models/pumps", **scope: Any
) -> tuple[list[Message], Exception | None]:
    """What is sent of an application that sends these messages, and what comes out of it."""
    sent: list[Message] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        for message in messages:
            if isinstance(message, Exception):
                raise message
            await send(message)

    async def keep(message: Message) -> None:
        sent.append(message)

    async def nothing() -> Message:
        return {"type": "http.request", "body": b""}

    try:
        told = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": [], "query_string": b""}
        await ProtocolErrors(app)(told | scope, nothing, keep)
    except Exception as error:
        return sent, error
    return sent, None


def problem(status: int, *headers: tuple[bytes, bytes]) -> list[Message]:
    """A problem document in two pieces."""
    body = json.dumps({"detail": "é: what is wrong", "code": "x"}).encode()
    return [
        {"type": "http.response.start", "status": status, "headers": [PROBLEM, (b"content-length", b"7"), *headers]},
        {"type": "http.response.body", "body": body[:9], "more_body": True},
        {"type": "http.response.body", "body": body[9:]},
    ]


@pytest.mark.parametrize(("status", "told"), [(422, 400), (401, 401), (404, 404), (429, 429), (503, 503)])
async def test_a_problem_has_the_protocols_form_its_length_and_its_other_headers(status: int, told: int) -> None:
    (start, body), error = await asked(problem(status, (b"retry-after", b"5"), (b"www-authenticate", b"Bearer")))
    assert error is None and start["status"] == told
    assert json.loads(body["body"]) == {"error": "é: what is wrong"}
    assert dict(start["headers"]) == {
        b"content-type": b"application/json", b"content-length": str(len(body["body"])).encode(), b"retry-after": b"5",
        b"www-authenticate": b"Bearer",
    }


@pytest.mark.parametrize(("path", "root", "turned"), [
    ("/v2", "", True), ("/v2/health/live", "", True), ("/v22", "", False), ("/v1/models", "", False), ("/", "", False),
    ("/behind/v2/models/x", "/behind", True), ("/behind/v1", "/behind", False),
])
async def test_of_these_addresses_alone(path: str, root: str, turned: bool) -> None:
    (start, *_), _ = await asked(problem(404), path, root_path=root)
    assert (PROBLEM in start["headers"]) is not turned


async def test_answers_pass_piece_by_piece() -> None:
    messages = [
        {"type": "http.response.start", "status": 200, "headers": [PLAIN]},
        {"type": "http.response.body", "body": b"{", "more_body": True}, {"type": "http.response.body", "body": b"}"},
    ]
    assert await asked(messages) == (messages, None)
    assert (await asked(problem(404), type="websocket"))[0] == problem(404)


async def test_what_nobody_expected_is_answered_without_its_cause_and_never_twice() -> None:
    (start, body), error = await asked([ValueError("the row of plant-7")])
    assert error is None and (start["status"], list(json.loads(body["body"]))) == (500, ["error"])
    assert b"plant-7" not in body["body"]
    begun: Message = {"type": "http.response.start", "status": 200, "headers": [PLAIN]}
    sent, error = await asked([begun, ValueError("in the midst")])
    assert sent == [begun] and isinstance(error, ValueError), "the connection breaks off: it was no whole answer"
