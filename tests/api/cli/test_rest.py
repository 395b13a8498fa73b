"""The command line's client of the REST API: what it sends, and how what it cannot get is said in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import httpx
import pytest

from api.cli import rest
from services.contracts.errors import BallastError, UnavailableError

Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], rest.RestClient]:
    def make(answer: Answer) -> rest.RestClient:
        with monkeypatch.context() as patch:
            patch.setattr("api.cli.rest.httpx.Client", partial(httpx.Client, transport=httpx.MockTransport(answer)))
            return rest.RestClient("http://oem:8000", "blst_x")

    return make


def test_a_request_has_token_path_and_body(client: Callable[[Answer], rest.RestClient]) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, json={"run_id": "r"}) if len(seen) == 1 else httpx.Response(204)

    with client(answer) as api:
        assert api.call("POST", "/v1/runs", {"a": 1}) == {"run_id": "r"}
        assert api.call("DELETE", "/v1/runs/r") is None, "an answer without a body"
    first, second = seen
    assert (first.method, str(first.url), json.loads(first.content)) == ("POST", "http://oem:8000/v1/runs", {"a": 1})
    assert first.headers["authorization"] == second.headers["authorization"] == "Bearer blst_x"
    assert second.content == b""
    with pytest.raises(RuntimeError, match="closed"):
        api.call("GET", "/v1/runs")


@pytest.mark.parametrize(("answer", "said", "code"), [
    (httpx.Response(409, json={"detail": "the name is taken", "code": "conflict"},
                    headers={"content-type": "application/problem+json"}), "the name is taken", "conflict"),
    (httpx.Response(404, json={}), "Not Found", "error"),
    (httpx.Response(502, text="<html>proxy</html>"), "Bad Gateway", "error"),
])
def test_a_problem_is_one_line_with_its_code(
    client: Callable[[Answer], rest.RestClient], answer: httpx.Response, said: str, code: str
) -> None:
    with client(lambda _: answer) as api, pytest.raises(BallastError) as refused:
        api.call("PUT", "/v1/x", {})
    assert (str(refused.value), refused.value.code) == (f"PUT /v1/x: {said}", code)


def test_who_does_not_answer_is_said(client: Callable[[Answer], rest.RestClient]) -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("", request=request)

    with client(away) as api, pytest.raises(UnavailableError, match="did not answer GET /v1/x: ConnectTimeout"):
        api.call("GET", "/v1/x")
