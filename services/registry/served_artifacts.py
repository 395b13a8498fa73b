"""Artifacts through MLflow's server: who asks from another machine cannot open the files of this one.

The store names files of this host (``file:///...``), which the service itself opens. In what the server answers they
stand as ``mlflow-artifacts:/...``, which MLflow's client fetches from the server that it asks anyway. Nothing is
written that way.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PROXY: Final = "mlflow-artifacts:/"
_FILES: Final = "/mlflow-artifacts/"
_READING: Final = ("GET", "HEAD")


class ServedArtifacts:
    """Names a folder's files in every JSON answer as artifacts of the server, and refuses to change them (405)."""

    def __init__(self, app: ASGIApp, root: str) -> None:
        self._app = app
        self._root = f"{root.rstrip('/')}/".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, and rename in what comes back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _FILES in scope["path"]:
            if scope["method"] not in _READING:
                refusal = PlainTextResponse("artifacts are read here, not written\n", 405, {"Allow": "GET, HEAD"})
                await refusal(scope, receive, send)
                return
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _Renaming(send, self._root))


class _Renaming:
    """Holds a JSON answer back until it is whole; lets all others pass as they come."""

    def __init__(self, send: Send, root: bytes) -> None:
        self._send = send
        self._root = root
        self._start: dict[str, Any] | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if Headers(raw=message["headers"]).get("content-type", "").startswith("application/json"):
                self._start = dict(message)
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if message.get("more_body", False):
                return
            body = self._body.replace(self._root, _PROXY.encode())
            headers = MutableHeaders(raw=list(self._start["headers"]))
            headers["content-length"] = str(len(body))
            await self._send(self._start | {"headers": headers.raw})
            await self._send({"type": "http.response.body", "body": body})
            return
        await self._send(message)
