"""What every request meets before a router: a largest body, and headers that browsers should obey."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.web.errors import problem
from services.reporting.html import HOME_STYLE, style_digest

LARGEST_BODY_BYTES: Final = 16 * 1024 * 1024  # 10,000 samples of 60 features and their names
LINES: Final = "application/x-ndjson"
UNBUFFERED: Final = {"X-Accel-Buffering": "no"}
"""Header of a stream's answer: proxies that know it (nginx) hand each piece on at once, and collect none."""
_STREAMED: Final = re.compile(r"/v1/models/[^/]+/(diagnose|estimate)")
"""Addresses that take lines without end and keep none of them: each line has a largest size of its own there."""
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        f"default-src 'none'; style-src {style_digest()} {style_digest(HOME_STYLE)}; frame-ancestors 'none'".encode(),
    ),
)
_ONLY_HTTPS: Final = (b"strict-transport-security", b"max-age=31536000")
"""For a year a browser asks this host by HTTPS only (RFC 6797)."""


class RequestLimits:
    """Refuses a body over a number of bytes, whether it says so beforehand or not, and what cannot be read.

    That is an address that is no text, and a body that is compressed: its size would say nothing of its length.
    """

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
        coding = b", ".join(value for name, value in scope["headers"] if name == b"content-encoding").strip().lower()
        if coding not in (b"", b"identity"):
            refusal = problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type",
                "send the body as it is, without Content-Encoding", headers={"Accept-Encoding": "identity"},
            )
            await refusal(scope, receive, send)
            return
        if _is_stream(scope):
            await self._app(scope, receive, send)
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


def _is_stream(scope: Scope) -> bool:
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    if scope["method"] != "POST" or len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != LINES.encode():
        return False
    return _STREAMED.fullmatch(str(scope["path"]).removeprefix(scope.get("root_path", ""))) is not None


class OnlyTls:
    """Refuses plain HTTP on every address but the loopback: a token would be there for all on the way to read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on what came by TLS, or from this host itself."""
        if scope["type"] == "http" and scope["scheme"] == "http" and _is_elsewhere((scope.get("server") or ("",))[0]):
            detail = "this address takes HTTPS only; the token of this request was readable on its way: revoke it"
            await problem(HTTPStatus.FORBIDDEN, "https_only", detail)(scope, receive, send)
            return
        await self._app(scope, receive, send)


@lru_cache(maxsize=64)
def _is_elsewhere(host: str) -> bool:
    """Whether a socket's own address is one that other hosts reach."""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:  # a socket file, or no socket at all
        return False


class SafeHeaders:
    """Adds to every answer what keeps it out of caches and frames, and its pages from loading anything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on; add the headers to the answer."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                added = (*_HEADERS, _ONLY_HTTPS) if scope["scheme"] == "https" else _HEADERS
                message["headers"] = [*message["headers"], *(pair for pair in added if pair[0] not in there)]
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
