"""HEAD is answered as GET is, and a slash too many is told by a path alone."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.app import api_routes
from api.events.feed import MOST_FOLLOWERS
from services.contracts.access.identity import Role

ASKED = [
    "/healthz", "/readyz", "/docs", "/metrics", "/v1/models", "/v1/models/pumps/versions/1/report.html",
    "/v1/models/nobody", "/v1/admin/audit/verify", "/v2/health/ready", "/v2/models/pumps", "/v2/models/nobody",
    "/nothing",
]


@pytest.mark.parametrize("path", ASKED)
def test_head_has_the_headers_of_get_and_no_body(shared_world: Any, path: str) -> None:
    said, head = (shared_world.call(Role.ADMINISTRATOR, method, path) for method in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (said.status_code, b"")
    changing = {"content-length"} if path == "/metrics" else set()
    assert {**head.headers, **dict.fromkeys(changing)} == {**said.headers, **dict.fromkeys(changing)}


def test_head_asks_for_the_same_token_and_role(shared_world: Any) -> None:
    assert shared_world.call(None, "HEAD", "/v1/models").status_code == 401
    assert shared_world.call(Role.VIEWER, "HEAD", "/v1/admin/plans").status_code == 403


def test_a_stream_that_only_its_head_is_asked_of_ends(world: Any, server: str) -> None:
    headers = {"Authorization": f"Bearer {world.tokens[Role.VIEWER]}"}
    with httpx.Client(base_url=server, headers=headers) as client:
        for _ in range(MOST_FOLLOWERS + 1):
            answer = client.head("/v1/events?after=0")
            assert (answer.status_code, answer.content) == (200, b"")
            assert answer.headers["content-type"].startswith("text/event-stream")


def test_a_slash_too_many_names_no_host_and_no_scheme(shared_world: Any) -> None:
    paths = {route.path for route in api_routes() if "GET" in route.methods and "{" not in route.path} - {"/"}
    for path in sorted(paths):
        for headers in ({}, {"Host": "elsewhere.example"}):
            answer = shared_world.call(Role.ADMINISTRATOR, "GET", f"{path}/?limit=1", headers=headers)
            if path.startswith("/console") and answer.status_code == 303:
                continue  # nobody is signed in
            assert (answer.status_code, answer.headers["Location"]) == (307, f"{path}?limit=1")
