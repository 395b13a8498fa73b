"""Pages by cursor: every row once, also when rows come and go meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import Request, Response

from api.app import api_routes
from api.web.paging import NO_CURSOR, page_of, write_cursor
from services.contracts.access.identity import Role
from tests.api.conftest import a_plan

LISTS = {
    "/v1/models": "models", "/v1/runs": "runs", "/v1/admin/sites": "sites", "/v1/admin/asset-types": "asset_types",
    "/v1/admin/plans": "plans", "/v1/admin/tokens": "tokens", "/v1/admin/audit": "events",
    "/v1/admin/webhooks": "webhooks", "/v1/admin/enrolment-codes": "codes",
}


def walked(world: Any, path: str, member: str, limit: int) -> list[Any]:
    """All rows of a list, page by page."""
    address, found = f"{path}{'&' if '?' in path else '?'}limit={limit}", []
    for _ in range(200):
        answer = world.call(Role.ADMINISTRATOR, "GET", address)
        assert answer.status_code == 200, answer.text
        rows = answer.json()[member]
        assert len(rows) <= limit and (rows or not found), "a page that is named as the next one has rows"
        found += rows
        link = answer.headers.get("Link")
        if link is None:
            return found
        address = re.fullmatch(r'<(/v1/[^>]+)>; rel="next"', link)[1]
    raise AssertionError("the list has no end")


def test_every_list_has_a_cursor(shared_world: Any) -> None:
    paths = shared_world.app.openapi()["paths"]
    for path in LISTS:
        names = {each["name"] for each in paths[path]["get"]["parameters"]}
        assert {"limit", "cursor"} <= names, path
    listing = [route.path for route in api_routes() if route.name.startswith("list_") and "{" not in route.path]
    assert sorted(listing) == sorted(LISTS), "a new list has a cursor too, and is in the table above"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def full(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, mlflow_settings: dict[str, str],
    opening: Callable[..., Any], new_key: Callable[[], str],
) -> Iterator[Any]:
    """One world on each server with lists of some pages; who adds a row to one counts from what is there."""
    database = request.getfixturevalue(f"new_{request.param}")()
    with opening(tmp_path_factory.mktemp("full"), database, mlflow_settings) as world:
        fill(world, new_key)
        yield world


def fill(world: Any, new_key: Callable[[], str]) -> None:
    store = world.backend.store
    for number, name in enumerate(("b-2", "b", "ba", "a-1", "b1")):
        store.sites.enrol(name, new_key(), ["triplex-pump"])
        store.plans.create(a_plan(name), paused=number > 2)
        store.runs.create_run(a_plan(name))
        hook = {"url": f"https://example.com/{name}"}
        assert world.call(Role.ADMINISTRATOR, "POST", "/v1/admin/webhooks", hook).status_code == 201
        code = {"replace_key": True, "certificate_sha256": "0" * 64}
        address = f"/v1/admin/sites/{name}/enrolment-codes"
        assert world.call(Role.ADMINISTRATOR, "POST", address, code).status_code == 201
        body = {"name": name, "role": "viewer"}
        assert world.call(Role.ADMINISTRATOR, "POST", "/v1/admin/tokens", body).status_code == 201


@pytest.mark.parametrize("path", sorted(set(LISTS) - {"/v1/models"}))
def test_pages_together_are_the_list(full: Any, path: str) -> None:
    whole = full.call(Role.ADMINISTRATOR, "GET", path).json()[LISTS[path]]
    assert len(whole) >= 2
    for limit in (1, 2, 3):
        assert walked(full, path, LISTS[path], limit) == whole, limit


@pytest.mark.parametrize(("limit", "more"), [(2, True), (3, False), (4, False)])
def test_a_last_page_that_is_just_full_names_no_next_one(limit: int, more: bool) -> None:
    request = Request({"type": "http", "path": "/v1/x", "query_string": b"", "headers": [], "server": ("host", 80)})
    response = Response()
    shown = page_of(["c", "a", "b"], lambda each: (each,), (str,), request, response, limit, None)
    assert (shown, "Link" in response.headers) == (tuple("abc"[:limit]), more)
    if more:
        cursor = response.headers["Link"].partition("cursor=")[2].partition("&")[0]
        assert page_of(["c", "a", "b"], lambda each: (each,), (str,), request, Response(), limit, cursor) == ("c",)


def test_filters_hold_on_every_page(full: Any) -> None:
    for path, member in (("/v1/runs?status=pending", "runs"), ("/v1/admin/plans?paused=true", "plans"),
                         ("/v1/admin/tokens?role=viewer&live=true", "tokens"),
                         ("/v1/admin/audit?action=token.create", "events"),
                         ("/v1/admin/enrolment-codes?state=open", "codes")):
        whole = full.call(Role.ADMINISTRATOR, "GET", path).json()[member]
        assert len(whole) >= 2
        assert walked(full, path, member, 2) == whole, path
    assert full.call(Role.ADMINISTRATOR, "GET", "/v1/admin/tokens?live=false").json()["tokens"] == []
    assert full.call(Role.ADMINISTRATOR, "GET", "/v1/admin/audit?since=2999-01-01T00:00:00Z").json()["events"] == []


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/admin/audit"])
def test_rows_that_are_left_out_are_left_out_once(full: Any, path: str) -> None:
    """An offset is of the first page; a cursor that goes on from there counts from its row."""
    whole = full.call(Role.ADMINISTRATOR, "GET", path).json()[LISTS[path]]
    assert len(whole) >= 5
    assert walked(full, f"{path}?offset=1", LISTS[path], 2) == whole[1:]


def test_a_row_that_comes_meanwhile_moves_no_other(full: Any) -> None:
    first = full.call(Role.ADMINISTRATOR, "GET", "/v1/runs?limit=3")
    full.backend.store.runs.create_run(a_plan("newest"))
    address = first.headers["Link"][1:].partition(">")[0]
    rest = full.call(Role.ADMINISTRATOR, "GET", address).json()["runs"]
    whole = [run["run_id"] for run in full.call(Role.ADMINISTRATOR, "GET", "/v1/runs").json()["runs"]]
    assert [run["run_id"] for run in first.json()["runs"] + rest] == whole[1:]


NO_ROW_HAS = (
    [2**63], [-(2**63)], ["2026-01-01T00:00:00+00:00", "\0"], ["2026-01-01T00:00:00+00:00", "\ud800"],
    ["9999-12-31T23:59:59-14:00", "ab"], ["0001-01-01T00:00:00+14:00", "ab"], ["2026-01-01T00:00:00", "ab"],
)


@pytest.mark.parametrize("key", NO_ROW_HAS, ids=ascii)
def test_a_key_that_no_row_has_is_no_cursor(lasting_world: Any, key: list[Any]) -> None:
    path = "/v1/admin/audit" if len(key) == 1 else "/v1/runs"
    answer = lasting_world.call(Role.ADMINISTRATOR, "GET", f"{path}?cursor={write_cursor(path, key)}")
    assert (answer.status_code, answer.json()["detail"]) == (422, NO_CURSOR)


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_moment_that_utc_does_not_have_does_not_fit(lasting_world: Any, moment: str) -> None:
    for name in ("since", "until"):
        answer = lasting_world.call(Role.ADMINISTRATOR, "GET", "/v1/admin/audit", params={name: moment})
        assert (answer.status_code, answer.json()["errors"][0]["where"]) == (422, f"query.{name}")
    token = {"name": "too late", "role": "viewer", "expires_at": moment}
    assert lasting_world.call(Role.ADMINISTRATOR, "POST", "/v1/admin/tokens", token).status_code == 422


@pytest.mark.parametrize("cursor", ["x", "bnVsbA", "WzFd", "é", "WyIyMDI2Il0", "WyJ4IiwieSJd"])
def test_what_is_no_cursor_is_said_to_be_none(shared_world: Any, cursor: str) -> None:
    for path in sorted(LISTS):
        answer = shared_world.call(Role.ADMINISTRATOR, "GET", f"{path}?cursor={cursor}")
        assert (answer.status_code, answer.json()["detail"]) == (422, NO_CURSOR), path


def test_a_cursor_of_another_list_is_none_of_this(full: Any) -> None:
    """Sites, plans and webhooks are all sorted by one word, runs and tokens by a time: a key would often fit."""
    cursors = {}
    for path in sorted(set(LISTS) - {"/v1/models", "/v1/admin/asset-types"}):
        link = full.call(Role.ADMINISTRATOR, "GET", f"{path}?limit=1").headers["Link"]
        cursors[path] = re.search(r"[?&]cursor=([^&>]+)", link)[1]
    for there in LISTS:
        for path, cursor in cursors.items():
            answer = full.call(Role.ADMINISTRATOR, "GET", f"{there}?cursor={cursor}")
            wanted = (200, None) if there == path else (422, NO_CURSOR)
            assert (answer.status_code, answer.json().get("detail")) == wanted, (path, there)
