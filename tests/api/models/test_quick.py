"""The quick way answers as the contract's way, and leaves what is not plain to it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from api.models import quick, service
from api.models.answers import KINDS
from api.models.examples import FEATURES_EXAMPLE
from services.contracts.access.identity import Role
from services.contracts.evaluation.diagnosis import DiagnoseResponse
from services.identity.tokens import issue
from tests.api.conftest import FOUNDER

PATH = "/v1/models/pumps/diagnose"
MANY = [FEATURES_EXAMPLE | {"flow_mean": 20.0 + 0.1 * k} for k in range(300)]


@pytest.mark.parametrize("body", [
    {"sample": FEATURES_EXAMPLE}, {"samples": MANY[:3], "alias": "1", "units": {"flow_mean": "L/min"}},
    {"samples": MANY}, {"sample": FEATURES_EXAMPLE, "samples": None},
])
def test_the_quick_answer_is_the_contracts(shared_world: Any, monkeypatch: Any, body: dict[str, Any]) -> None:
    shared_world.call(Role.VIEWER, "POST", PATH, body)
    fast = shared_world.call(Role.VIEWER, "POST", PATH, body)

    async def never(*_: object) -> None:
        return None

    assert quick.read(json.dumps(body).encode(), KINDS["diagnose"]) is not None
    monkeypatch.setattr(quick, "_quick", never)
    slow = shared_world.call(Role.VIEWER, "POST", PATH, body)
    assert fast.status_code == slow.status_code == 200
    assert list(fast.json()) == list(slow.json()) and fast.headers["content-type"] == slow.headers["content-type"]
    assert DiagnoseResponse.model_validate(fast.json()) == DiagnoseResponse.model_validate(slow.json())


def test_the_version_that_was_asked_for_answers_also_where_the_champion_is_at_hand(world: Any) -> None:
    first, second = world.new_model("quick-two", 0.9, 0.95)
    path = "/v1/models/quick-two/diagnose"
    service.promote(world.backend, FOUNDER, "quick-two", second, "of the test")
    asked = [("champion", second), (first, first), ("champion", second), (first, first), (second, second)]
    for alias, version in asked:
        answer = world.call(Role.VIEWER, "POST", path, {"sample": FEATURES_EXAMPLE, "alias": alias})
        assert (answer.status_code, answer.json()["model_version"]) == (200, version)


@pytest.mark.parametrize(("query", "said"), [
    ("alias=1", "query: alias belongs into the body of a request in JSON"),
    ("colour=red", "query: there is no parameter colour; a request in JSON says alias, "),
])
def test_what_stands_in_the_address_of_a_request_in_json_is_not_passed_over(
    shared_world: Any, query: str, said: str
) -> None:
    answer = shared_world.call(Role.VIEWER, "POST", f"{PATH}?{query}", {"sample": FEATURES_EXAMPLE})
    assert answer.status_code == 422 and said in answer.json()["detail"]


@pytest.mark.parametrize(("kind", "status"), [
    ("application/json; charset=utf-8", 200), ("application/vnd.plant+json", 200), ("APPLICATION/JSON", 200),
    ("text/x+json", 415), ("text/json", 415), ("application/jsonx", 415),
])
def test_json_is_what_is_called_so(shared_world: Any, kind: str, status: int) -> None:
    content = json.dumps({"sample": FEATURES_EXAMPLE}).encode()
    answer = shared_world.call(Role.VIEWER, "POST", PATH, content=content, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("body", [
    b"{", b"[]", b"{}", b'{"sample": {}}', b'{"samples": []}', b'{"samples": {"a": 1}}', b'{"samples": [{"a": 1}, 2]}',
    b'{"sample": {"a": 1}, "samples": [{"a": 1}]}', b'{"sample": {"a": 1}, "more": 1}', b'{"sample": {"a": NaN}}',
    b'{"sample": {"a": 1}, "alias": "a b"}', b'{"sample": {"a": 1}, "coverage": 1.5}', b'{"sample": {"a": 1e999}}',
    b'{"sample": {"a": 1}, "coverage": "0.9"}',
    json.dumps({"samples": [{"a": 1}] * 10_001}).encode(),
])
def test_what_is_not_plain_is_left_to_the_contract(body: bytes) -> None:
    assert quick.read(body, KINDS["diagnose"]) is None


def test_a_token_that_was_checked_before_ends_with_the_request_after_its_revocation(world: Any) -> None:
    made = issue("a gateway", Role.VIEWER, datetime.now(UTC))
    world.backend.store.tokens.add(made.stored)
    header = {"Authorization": f"Bearer {made.text}"}
    for _ in range(3):
        answer = world.call(None, "POST", PATH, {"sample": FEATURES_EXAMPLE}, headers=header)
        assert answer.status_code == 200
    assert world.app.state.authenticator.known(header["Authorization"]) is not None
    world.backend.store.tokens.revoke(made.stored.token.token_id)
    answer = world.call(None, "POST", PATH, {"sample": FEATURES_EXAMPLE}, headers=header)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_revoked")


def test_a_token_that_may_not_diagnose_does_not_on_the_quick_way_either(world: Any) -> None:
    made = issue("a reader", Role.VIEWER, datetime.now(UTC), scopes=("read",))
    world.backend.store.tokens.add(made.stored)
    for kind in ("application/json", "application/x-ndjson"):
        header = {"Authorization": f"Bearer {made.text}", "Content-Type": kind}
        content = json.dumps({"sample": FEATURES_EXAMPLE}).encode()
        answer = world.call(None, "POST", PATH, content=content, headers=header)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
