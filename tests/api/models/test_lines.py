"""A sample a line in, an answer a line out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient

from api.models import lines
from api.models.examples import FEATURES_EXAMPLE
from services.contracts.access.identity import Role

PATH = "/v1/models/pumps/diagnose"
KIND = {"Content-Type": "application/x-ndjson"}
GOOD = json.dumps(FEATURES_EXAMPLE).encode()


def sent(world: Any, content: bytes, query: str = "") -> tuple[int, list[dict[str, Any]]]:
    answer = world.call(Role.VIEWER, "POST", PATH + query, content=content, headers=KIND)
    assert answer.status_code != 200 or answer.headers["x-accel-buffering"] == "no"
    return answer.status_code, [json.loads(line) for line in answer.content.splitlines()]


def test_each_line_is_answered_in_its_place_and_the_end_is_told(shared_world: Any) -> None:
    without = json.dumps({k: v for k, v in FEATURES_EXAMPLE.items() if k != "flow_mean"}).encode()
    content = b"\n".join([GOOD, b"", without, b"{not json", b'{"flow_mean": "x"}', b"[1]", b"x" * 70_000, GOOD])
    status, found = sent(shared_world, content)
    *answers, end = found
    assert status == 200 and [each["line"] for each in answers] == [1, 3, 4, 5, 6, 7, 8]
    alone = shared_world.call(Role.VIEWER, "POST", PATH, {"sample": FEATURES_EXAMPLE}).json()
    for at in (0, -1):
        assert {k: v for k, v in answers[at].items() if k != "line"} == alone["diagnoses"][0]
    errors = {each["line"]: each["error"] for each in answers if "error" in each}
    assert errors[3] == "line 3: missing required feature flow_mean" and "JSON object" in errors[4]
    assert errors[5].startswith("line 5: missing required") and "65536 bytes" in errors[7]
    assert end == {
        "end": True, "model": "pumps", "model_version": "1", "run_id": alone["run_id"], "lines": 7, "answered": 2,
        "refused": 5,
    }


def test_a_byte_order_mark_before_the_first_line_says_nothing(shared_world: Any) -> None:
    _, (one, two, end) = sent(shared_world, b"\xef\xbb\xbf" + GOOD + b"\r\n\xef\xbb\xbf" + GOOD)
    assert "error" not in one and "JSON object" in two["error"] and (end["answered"], end["refused"]) == (1, 1)


def test_more_lines_than_a_request_holds_are_answered_in_order_from_pieces_of_any_size(
    shared_world: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("api.web.limits.LARGEST_BODY_BYTES", 1000)
    values = [20.0 + 0.001 * k for k in range(11_000)]
    text = b"".join(json.dumps(FEATURES_EXAMPLE | {"flow_mean": value}).encode() + b"\n" for value in values)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(text), 9_973):
            yield text[start : start + 9_973]

    async def ask() -> bytes:
        headers = {"Authorization": f"Bearer {shared_world.tokens[Role.VIEWER]}"} | KIND
        async with AsyncClient(transport=ASGITransport(shared_world.app), base_url="http://ballast") as client:
            return (await client.post(PATH, content=pieces(), headers=headers)).content

    *answers, end = (json.loads(line) for line in shared_world.portal.call(ask).splitlines())
    assert [each["line"] for each in answers] == list(range(1, 11_001)) and end["answered"] == 11_000
    for at in (0, 5_432, 10_999):
        body = {"sample": FEATURES_EXAMPLE | {"flow_mean": values[at]}}
        alone = shared_world.call(Role.VIEWER, "POST", PATH, body).json()["diagnoses"][0]
        assert answers[at]["scores"] == pytest.approx(alone["scores"], abs=1e-12)


@pytest.mark.parametrize(("query", "status"), [
    ("?alias=17", 404), ("?alias=a%20b", 422), ("?nothing=1", 422), ("?coverage=2", 422), ("?alias=1", 200),
    ("?sample=1", 422), ("?units=1", 422), ("?alias=1&alias=1", 422),
])
def test_what_stands_in_the_query_is_held_to_the_contract_before_the_stream_begins(
    shared_world: Any, query: str, status: int
) -> None:
    assert sent(shared_world, GOOD, query)[0] == status


@pytest.mark.parametrize("content", [GOOD, b"{}", b""])
def test_a_coverage_that_is_not_to_be_had_is_refused_before_the_stream_begins(
    shared_world: Any, content: bytes
) -> None:
    answer = shared_world.call(Role.VIEWER, "POST", PATH + "?coverage=0.5", content=content, headers=KIND)
    assert (answer.status_code, answer.json()["code"]) == (409, "coverage_not_available")
    body = {"sample": FEATURES_EXAMPLE, "coverage": 0.5}
    assert shared_world.call(Role.VIEWER, "POST", PATH, body).json()["detail"] == answer.json()["detail"]


def test_parameters_that_are_not_known_or_said_twice_are_told_as_on_every_other_route(shared_world: Any) -> None:
    for kind, query, said in (
        ("diagnose", "?covrage=0.5", "query.covrage: no such parameter; known here: alias, coverage"),
        ("diagnose", "?confidence=0.5", "query.confidence: no such parameter; known here: alias, coverage"),
        ("estimate", "?covrage=0.5", "query.covrage: no such parameter; known here: alias, confidence, coverage"),
        ("diagnose", "?coverage=0.5&coverage=0.6", "query.coverage: this is said twice; say it once"),
    ):
        path = f"/v1/models/pumps/{kind}{query}"
        answer = shared_world.call(Role.VIEWER, "POST", path, content=GOOD, headers=KIND)
        assert (answer.status_code, answer.json()["detail"]) == (422, said)


def test_a_stream_ends_with_its_token(world: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(lines, "CHUNK", 1)
    token = world.tokens[Role.VIEWER]
    before = lines.by_line

    def revoking(*given: Any) -> Any:
        world.backend.store.tokens.revoke(token.split("_")[1])
        return before(*given)

    monkeypatch.setattr(lines, "by_line", revoking)
    _, found = sent(world, GOOD + b"\n" + GOOD)
    first, end = found
    assert first["line"] == 1 and end["end"] is False and "revoked" in end["error"]


@pytest.mark.parametrize("query", ["", "?alias=1", "?coverage=2&nonsense=1"])
@pytest.mark.parametrize("kind", ["application/ndjson", "application/jsonl", "text/csv"])
def test_lines_by_another_name_are_told_the_right_one(shared_world: Any, kind: str, query: str) -> None:
    """Not that they are JSON, and that what stands in their query belongs into a body."""
    answer = shared_world.call(Role.VIEWER, "POST", PATH + query, content=b"{}", headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert "application/json" in answer.json()["detail"] and "application/x-ndjson" in answer.json()["detail"]


def test_other_addresses_take_no_more_than_they_did_whatever_the_body_is_called(shared_world: Any) -> None:
    content = b"x" * (16 * 1024 * 1024 + 1)
    for path in ("/v1/admin/plans", "/v1/models/pumps/diagnose/more", "/v2/models/pumps/infer"):
        answer = shared_world.call(Role.ADMINISTRATOR, "POST", path, content=content, headers=KIND)
        assert answer.status_code in (404, 413), path
