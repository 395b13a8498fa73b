"""What the OpenAPI document says of an operation: which refusals it may meet, and the least role that it needs."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Body, Depends, FastAPI, Header
from fastapi.routing import APIRoute

from api.web.auth import Administrator
from api.web.openapi import _allow_words, _refusals, permission_of

ALWAYS = {413, 503}


def route(path: str, method: str, endpoint: Any) -> tuple[APIRoute, dict[str, Any]]:
    """A route, and its operation as the framework describes it."""
    router = APIRouter()
    router.add_api_route(path, endpoint, methods=[method])
    app = FastAPI()
    app.include_router(router)
    (made,) = [each for each in router.routes if isinstance(each, APIRoute)]
    operation = app.openapi()["paths"][path][method.lower()]
    operation["responses"].pop("422", None)
    return made, operation


def refusals(path: str, method: str, endpoint: Any) -> set[int]:
    made, operation = route(path, method, endpoint)
    return {int(status) for status in _refusals(operation, made)}


def open_to_all() -> None: ...


def by_token(_: Administrator) -> None: ...


def with_body(_: Administrator, body: Annotated[dict[str, int], Body()]) -> None: ...


def on_condition(_: Administrator, if_match: Annotated[str, Header()]) -> None: ...


@pytest.mark.parametrize(("path", "method", "endpoint", "wanted"), [
    ("/healthz", "GET", open_to_all, {422}), ("/v1/things", "GET", by_token, {401, 403, 422, 429}),
    ("/v1/things/{id}", "GET", by_token, {401, 403, 404, 422, 429}),
    ("/v1/admin/things", "POST", by_token, {401, 403, 409, 422, 429}),
    ("/v1/models", "POST", with_body, {401, 403, 404, 409, 415, 422, 429}),
    ("/v1/admin/things", "PUT", on_condition, {401, 403, 409, 412, 422, 428, 429}),
    ("/v2/models", "POST", with_body, {400, 401, 403, 404, 409, 415, 429}),
])
def test_an_operation_names_the_refusals_that_it_may_meet(
    path: str, method: str, endpoint: Any, wanted: set[int]
) -> None:
    assert refusals(path, method, endpoint) == wanted | ALWAYS


def deep(_: Annotated[None, Depends(by_token)]) -> None: ...


def test_a_permission_is_found_however_deep_it_is_asked_for() -> None:
    assert permission_of(route("/x", "GET", open_to_all)[0]) is None
    asked = [permission_of(route("/x", "GET", each)[0]) for each in (by_token, deep)]
    assert asked[0] is not None and asked[0] == asked[1]


WORDS = {"type": "string", "enum": ["Infinity", "-Infinity", "NaN"]}


@pytest.mark.parametrize(("field", "kinds"), [
    ({"type": "number", "minimum": 0.0}, [{"type": "number", "minimum": 0.0}]),
    ({"type": "number", "maximum": 1}, [{"type": "number", "maximum": 1}]),
    ({"type": "number", "exclusiveMinimum": 0}, [{"type": "number", "exclusiveMinimum": 0}]),
    ({"anyOf": [{"type": "number"}, {"type": "null"}]}, [{"type": "number"}, {"type": "null"}]),
])
def test_a_number_that_may_be_infinite_keeps_its_limits_and_may_be_a_word(
    field: dict[str, Any], kinds: list[dict[str, Any]]
) -> None:
    told = field | {"title": "Gap"}
    _allow_words(told)
    assert told == {"title": "Gap", "anyOf": [*kinds, WORDS]}, "limits are of the number: a word has none"
