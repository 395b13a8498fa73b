"""Which request an address gets: HEAD as GET without its body, and a slash too many told by a path alone."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

REDIRECTED: Final = 307
"""What the framework answers where there is nothing but for a slash at the end; nothing of ours answers it."""


class Addresses:
    """Answers HEAD wherever GET is answered (RFC 9110, 9.1), and names no host in the framework's redirects.

    What the framework would name is the ``Host`` of the request and the scheme of the last hop: behind a proxy that
    ends TLS an address within, by plain HTTP.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        without_body = scope["method"] == "HEAD"
        ended = False

        async def answer(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start" and message["status"] == REDIRECTED:
                message["headers"] = [_by_path(name, value) for name, value in message["headers"]]
            if without_body and message["type"] == "http.response.body":
                if ended:
                    return
                ended, message = True, {"type": "http.response.body", "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"} if without_body else scope, receive, answer)


def _by_path(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Header of a redirect, its address without scheme and host (RFC 9110, 10.2.2)."""
    return name, urlsplit(value)._replace(scheme=b"", netloc=b"").geturl() if name == b"location" else value
