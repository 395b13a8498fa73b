from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from api.tokens.schemas import NewToken
from api.web.authenticator import TokenAuthenticator
from services.contracts.access.identity import Role
from services.identity.tokens import issue
from tests.oracles.store_walk import all_columns
from tests.waiting import wait_until

PATH = "/v1/admin/tokens"


def test_a_token_is_shown_once_works_and_is_revoked(any_world: Any) -> None:
    body = {"name": "gateway", "role": "viewer", "days": 30}
    made = any_world.call(Role.ADMINISTRATOR, "POST", PATH, body)
    assert made.status_code == 201
    token = made.json()
    secret = token["token"]
    created, expires = (datetime.fromisoformat(token[key]) for key in ("created_at", "expires_at"))
    assert expires - created == timedelta(days=30)
    header = {"Authorization": f"Bearer {secret}"}
    assert any_world.call(None, "GET", "/v1/runs", headers=header).status_code == 200
    assert any_world.call(None, "GET", PATH, headers=header).status_code == 403
    listed = any_world.call(Role.ADMINISTRATOR, "GET", PATH)
    names = [item["name"] for item in listed.json()["tokens"]]
    assert sorted(names) == ["gateway", "the administrator", "the engineer", "the operator", "the viewer"]
    stored = "\n".join(str(cell.value) for cell in all_columns(any_world.backend.store.engine))
    secret_part = secret.rsplit("_", 1)[1]
    assert secret_part not in listed.text
    assert secret_part not in stored
    for _ in range(2):
        revoked = any_world.call(Role.ADMINISTRATOR, "POST", f"{PATH}/{token['token_id']}/revoke", {"reason": "lost"})
        assert revoked.json()["revoked_at"] is not None
    assert any_world.call(None, "GET", "/v1/runs", headers=header).status_code == 401
    assert any_world.events() == ["token.revoke", "token.create"]
    gone, begun = any_world.backend.store.audit.list_events(limit=2)
    assert (gone.reason, gone.before["revoked_at"], gone.after) == ("lost", None, revoked.json())
    assert set(begun.after) == {*revoked.json(), "fingerprint"}, "nor is the secret's digest in the trail"


def test_tokens_are_listed_the_newest_first_and_by_role(world: Any) -> None:
    for name, role in (("first", "viewer"), ("second", "operator"), ("third", "viewer")):
        assert world.call(Role.ADMINISTRATOR, "POST", PATH, {"name": name, "role": role}).status_code == 201

    def listed(query: str = "") -> list[str]:
        return [each["name"] for each in world.call(Role.ADMINISTRATOR, "GET", PATH + query).json()["tokens"]]

    assert listed()[:3] == ["third", "second", "first"]
    assert listed("?role=viewer") == ["third", "first", "the viewer"]
    assert listed("?role=operator&live=true") == ["second", "the operator"]


def test_tokens_that_hold_now_are_told_from_ended_and_revoked_ones(world: Any) -> None:
    store, now = world.backend.store, datetime.now(UTC)
    for name in ("ended", "revoked"):
        made = issue(name, Role.VIEWER, now - timedelta(days=2), timedelta(days=1 if name == "ended" else 9))
        store.tokens.add(made.stored)
    store.tokens.revoke(made.stored.token.token_id)

    def names(query: str) -> set[str]:
        found = world.call(Role.ADMINISTRATOR, "GET", f"{PATH}?{query}").json()["tokens"]
        return {each["name"] for each in found}

    assert names("live=false") == {"ended", "revoked"}
    assert names("live=true") == names("limit=100") - {"ended", "revoked"} != set()


def test_a_token_that_ends_holds_ten_years_at_most(lasting_world: Any) -> None:
    refused = lasting_world.call(Role.ADMINISTRATOR, "POST", PATH, {"name": "x", "role": "viewer", "days": 3650.5})
    assert refused.status_code == 422 and "body.days" in refused.json()["detail"]
    made = NewToken(token="blst_shown", token_id="0" * 12, name="x", role=Role.VIEWER, created_at=datetime.now(UTC),
                    expires_at=None, scopes=None)
    assert "blst_shown" not in repr(made), "a line of a log that has it shows no secret"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"name": "the viewer", "role": "viewer"}, 409, "the viewer"),
        ({"name": "x", "role": "king"}, 422, "body.role"),
        ({"name": "", "role": "viewer"}, 422, "body.name"),
        ({"name": " ", "role": "viewer"}, 422, "name"),
        ({"name": "a\nb", "role": "viewer"}, 422, "name"),
        ({"name": "x", "role": "viewer", "days": 0}, 422, "body.days"),
        ({"name": "x", "role": "viewer", "expires_at": "2020-01-01T00:00:00Z"}, 422, "lies in the future"),
        ({"name": "x", "role": "viewer", "expires_at": "2099-01-01T00:00:00"}, 422, "body.expires_at"),
        ({"name": "x", "role": "viewer", "days": 1, "expires_at": "2099-01-01T00:00:00Z"}, 422, "not both"),
        ({"name": "x", "role": "viewer", "scopes": ["operate"]}, 422, "does not have the scope operate"),
        ({"name": "x", "role": "viewer", "scopes": []}, 422, "body.scopes"),
        ({"name": "x", "role": "viewer", "scopes": ["rule"]}, 422, "body.scopes"),
        ({"name": "x", "role": "viewer", "days": "NaN"}, 422, "body.days"),
    ],
)
def test_a_token_that_does_not_fit_is_refused(lasting_world: Any, body: dict[str, Any], status: int, said: str) -> None:
    before = lasting_world.snapshot()
    answer = lasting_world.call(Role.ADMINISTRATOR, "POST", PATH, body)
    assert answer.status_code == status, answer.text
    assert said in answer.json()["detail"]
    assert lasting_world.snapshot() == before


def test_an_unknown_token_cannot_be_revoked(shared_world: Any) -> None:
    assert shared_world.call(Role.ADMINISTRATOR, "POST", f"{PATH}/{'0' * 12}/revoke").status_code == 404


def test_a_token_is_narrowed_to_its_scopes(any_world: Any) -> None:
    body = {"name": "gateway", "role": "operator", "scopes": ["diagnose"]}
    made = any_world.call(Role.ADMINISTRATOR, "POST", PATH, body).json()
    assert made["scopes"] == ["diagnose"]
    header = {"Authorization": f"Bearer {made['token']}"}
    refused = any_world.call(None, "GET", "/v1/runs", headers=header)
    assert (refused.status_code, "scope read" in refused.json()["detail"]) == (403, True)
    diagnosed = any_world.call(None, "POST", "/v1/models/nobody/diagnose", {"samples": [{}]}, headers=header)
    assert diagnosed.status_code in (404, 422)
    assert any_world.call(None, "POST", "/v1/admin/plans/pumps/pause", headers=header).status_code == 403


def test_a_token_ends_when_it_was_said_to(world: Any) -> None:
    end = datetime.now(UTC) + timedelta(seconds=4)
    made = world.call(Role.ADMINISTRATOR, "POST", PATH, {"name": "x", "role": "viewer", "expires_at": end.isoformat()})
    assert datetime.fromisoformat(made.json()["expires_at"]) == end
    header = {"Authorization": f"Bearer {made.json()['token']}"}
    assert world.call(None, "GET", "/v1/runs", headers=header).status_code == 200
    wait_until(lambda: world.call(None, "GET", "/v1/runs", headers=header).status_code == 401, "end of the token")


def test_an_address_with_tokens_that_do_not_hold_waits_and_nobody_else_does(world: Any) -> None:
    known = {"Authorization": f"Bearer {world.tokens[Role.VIEWER]}"}
    assert world.call(None, "GET", "/v1/runs", headers=known).status_code == 200
    wrong = {"Authorization": f"Bearer blst_{'0' * 12}_{'0' * 64}"}
    codes = [world.call(None, "GET", "/v1/runs", headers=wrong).status_code for _ in range(12)]
    assert codes == [401] * 10 + [429] * 2
    refused = world.call(None, "GET", "/v1/runs", headers=wrong)
    assert (refused.json()["code"], refused.headers["retry-after"]) == ("too_many_attempts", "60")
    assert world.call(None, "GET", "/v1/runs", headers=known).status_code == 200
    fresh = world.call(Role.OPERATOR, "GET", "/v1/runs")
    assert fresh.status_code == 429  # it holds, but nobody knows that before it is looked at


def test_a_token_that_was_checked_is_not_looked_up_again_while_nothing_is_written(shared_world: Any) -> None:
    authenticator, header = shared_world.app.state.authenticator, f"Bearer {shared_world.tokens[Role.VIEWER]}"
    caller = authenticator.authenticate(header)
    assert authenticator.known(header) == caller


def test_a_token_that_was_checked_ends_by_the_clock_while_nothing_is_written() -> None:
    made = issue("short", Role.VIEWER, datetime.now(UTC), timedelta(seconds=1))
    tokens: Any = SimpleNamespace(find=lambda _: made.stored)
    authenticator = TokenAuthenticator(tokens, mark=lambda: "as before")
    header = f"Bearer {made.text}"
    authenticator.authenticate(header)
    assert authenticator.known(header) is not None
    wait_until(lambda: authenticator.known(header) is None, "end of the token")
