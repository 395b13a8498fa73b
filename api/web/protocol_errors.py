"""Errors below ``/v2`` as the Open Inference Protocol has them: ``{"error": "..."}`` in place of a problem document."""

from __future__ import annotations

import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.web.auth import PROTOCOL
from api.web.errors import MEDIA_TYPE, unexpected_problem


class ProtocolErrors:
    """Turns every problem document of these addresses, whoever made it; a request that does not fit answers 400.

    What nobody expected is answered here too: the framework's own answer to it is made outside of all of this.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on; turn a problem document."""
        path = str(scope["path"]).removeprefix(scope.get("root_path", "")) if scope["type"] == "http" else ""
        if path != PROTOCOL and not path.startswith(f"{PROTOCOL}/"):
            await self._app(scope, receive, send)
            return
        held: Message | None = None
        body, begun = b"", False

        async def turned(message: Message) -> None:
            nonlocal held, body, begun
            begun = True
            if message["type"] == "http.response.start" and _is_problem(message):
                held = message
            elif held is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    text = json.dumps({"error": json.loads(body)["detail"]}, ensure_ascii=False).encode()
                    await send(_start(held, len(text)))
                    await send({"type": "http.response.body", "body": text})

        try:
            await self._app(scope, receive, turned)
        except Exception as error:
            if begun:
                raise
            await unexpected_problem(error)(scope, receive, turned)


def _is_problem(message: Message) -> bool:
    return any(name == b"content-type" and value.startswith(MEDIA_TYPE.encode()) for name, value in message["headers"])


def _start(held: Message, length: int) -> Message:
    kept = [pair for pair in held["headers"] if pair[0] not in (b"content-type", b"content-length")]
    headers = [*kept, (b"content-type", b"application/json"), (b"content-length", str(length).encode())]
    return {**held, "status": 400 if held["status"] == 422 else held["status"], "headers": headers}
