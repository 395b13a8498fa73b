"""What every request meets before a router: a largest body, and headers that browsers should obey."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.web.errors import problem

LARGEST_BODY_BYTES: Final = 16 * 1024 * 1024  # 10,000 samples of 60 features and their names
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
)


class RequestLimits:
    """Refuses a body over a number of bytes, whether it says so beforehand or not, and an address that is no text."""

    def __init__(self, app: ASGIApp, *, largest: int = LARGEST_BODY_BYTES) -> None:
        self._app = app
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, counting its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if "\x00" in scope["path"] or b"%00" in scope["query_string"]:
            # PostgreSQL cannot hold it, so nothing that is stored has it in its name.
            refusal = problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_input", "an address cannot contain U+0000")
            await refusal(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._largest:
                raise HTTPException(413, f"the body is larger than {self._largest} bytes; send fewer samples at once")
            return message

        await self._app(scope, counted, send)


class SafeHeaders:
    """Adds to every answer what keeps it out of caches and frames, and its pages from loading anything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on; add the headers to the answer."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in _HEADERS if pair[0] not in there)]
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
