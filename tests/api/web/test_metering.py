"""What is counted of requests: every one, by its route and never by its address; streams have no duration."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from api.web.metering import NO_ROUTE, Metering, Meters


def counted(kind: bytes = b"application/json", route: str | None = "/v1/x/{name}", fails: bool = False) -> Meters:
    """Meters after one request."""
    meters = Meters()
    whole = SimpleNamespace(state=SimpleNamespace(meters=meters))
    scope: dict[str, Any] = {"type": "http", "method": "BREW", "path": "/v1/x/secret", "app": whole}

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        if route is not None:
            scope["route"] = SimpleNamespace(path=route)
        if fails:
            raise RuntimeError
        await send({"type": "http.response.start", "status": 418, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> None:
        async def nothing(_message: Any = None) -> Any:
            return None

        await Metering(app)(scope, nothing, nothing)

    if fails:
        with pytest.raises(RuntimeError):
            asyncio.run(ask())
    else:
        asyncio.run(ask())
    return meters


def value(meters: Meters, name: str, **labels: str) -> float | None:
    return meters.registry.get_sample_value(f"ballast_http_{name}", labels)


def test_a_request_is_counted_by_its_route_and_status() -> None:
    meters = counted()
    assert value(meters, "requests_total", method="BREW", route="/v1/x/{name}", status="418") == 1
    assert value(meters, "request_seconds_count", route="/v1/x/{name}") == 1


def test_of_an_address_that_is_no_routes_nothing_that_its_caller_wrote_is_kept() -> None:
    meters = counted(route=None)
    assert value(meters, "requests_total", method=NO_ROUTE, route=NO_ROUTE, status="418") == 1
    assert "secret" not in repr([*meters.registry.collect()]) and "BREW" not in repr([*meters.registry.collect()])


def test_a_request_that_ends_by_an_error_is_one_of_500() -> None:
    assert value(counted(fails=True), "requests_total", method="BREW", route="/v1/x/{name}", status="500") == 1


@pytest.mark.parametrize("kind", [b"text/event-stream", b"application/x-ndjson; charset=utf-8"])
def test_a_stream_has_no_duration(kind: bytes) -> None:
    meters = counted(kind)
    assert value(meters, "requests_total", method="BREW", route="/v1/x/{name}", status="418") == 1
    assert value(meters, "request_seconds_count", route="/v1/x/{name}") is None
