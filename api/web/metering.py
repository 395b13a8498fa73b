"""Counts requests, by route, status and time; no address, caller or measurement in any of it."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# No second series for each with the time at which it began: nobody asks for it.
disable_created_metrics()  # type: ignore[no-untyped-call]
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds."""
STREAMS = (b"text/event-stream", b"application/x-ndjson")
"""Kinds of answers that last as long as the client wants."""
NO_ROUTE = "none"
"""In the place of an address that is no route's: it is anybody's text."""


class Meters:
    """The counters of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "ballast_http_requests", "Requests that were answered", ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "ballast_http_request_seconds", "Seconds until the answer was complete, streams left out", ("route",),
            buckets=BUCKETS, registry=self.registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float, *, streamed: bool) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        if not streamed:
            self._seconds.labels(route).observe(seconds)


class Metering:
    """Counts every request that a route answers, refused ones too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and count its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, streamed = time.perf_counter(), 500, False

        async def seen(message: Message) -> None:
            nonlocal status, streamed
            if message["type"] == "http.response.start":
                status = message["status"]
                streamed = any(value.startswith(STREAMS) for name, value in message["headers"]
                               if name == b"content-type")
            await send(message)

        try:
            await self._app(scope, receive, seen)
        finally:
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            meters: Meters = scope["app"].state.meters
            method = scope["method"] if route != NO_ROUTE else NO_ROUTE
            meters.answered(method, route, status, time.perf_counter() - began, streamed=streamed)


async def _meters(request: Request) -> Meters:
    meters: Meters = request.app.state.meters
    return meters


MetersDep = Annotated[Meters, Depends(_meters)]
