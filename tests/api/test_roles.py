"""Every route with every role: who may not, must not; who may, is let in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.routing import Route

from api.app import api_routes
from services.contracts.access.identity import Role
from services.identity.tokens import issue

OPEN = {
    ("GET", "/"), ("GET", "/docs"), ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/v2/health/live"),
    ("GET", "/v2/health/ready"),
}
PROTOCOL = {
    ("GET", "/v2"),
    ("GET", "/v2/models/{name}"),
    ("GET", "/v2/models/{name}/ready"),
    ("POST", "/v2/models/{name}/infer"),
    ("GET", "/v2/models/{name}/versions/{version}"),
    ("GET", "/v2/models/{name}/versions/{version}/ready"),
    ("POST", "/v2/models/{name}/versions/{version}/infer"),
}
"""Of the Open Inference Protocol, for viewers: its errors are no problem documents (``tests/api/inference``)."""
BY_CODE = {("POST", "/enrol")}
"""Needs no token, but an enrolment code that holds."""
NEEDED = {
    ("POST", "/v1/models/{name}/diagnose"): Role.VIEWER,
    ("POST", "/v1/models/{name}/estimate"): Role.VIEWER,
    ("GET", "/v1/models"): Role.VIEWER,
    ("GET", "/v1/models/{name}"): Role.VIEWER,
    ("GET", "/v1/models/{name}/versions/{version}"): Role.VIEWER,
    ("GET", "/v1/models/{name}/versions/{version}/report"): Role.VIEWER,
    ("GET", "/v1/models/{name}/versions/{version}/report.html"): Role.VIEWER,
    ("GET", "/v1/models/{name}/versions/{version}/certificate"): Role.ENGINEER,
    ("GET", "/v1/models/{name}/versions/{version}/certificate.zip"): Role.ENGINEER,
    ("GET", "/v1/models/{name}/versions/{version}/export"): Role.OPERATOR,
    ("GET", "/v1/models/{name}/versions/{version}/fairness"): Role.VIEWER,
    ("GET", "/v1/models/{name}/versions/{version}/fairness.svg"): Role.VIEWER,
    ("GET", "/v1/models/{name}/versions/{version}/fairness.png"): Role.VIEWER,
    ("GET", "/v1/models/{name}/versions/{version}/fairness.html"): Role.VIEWER,
    ("GET", "/v1/runs"): Role.VIEWER,
    ("GET", "/v1/runs/{run_id}"): Role.VIEWER,
    ("GET", "/v1/runs/{run_id}/rounds"): Role.VIEWER,
    ("GET", "/v1/admin/sites"): Role.ENGINEER,
    ("POST", "/v1/admin/sites"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/sites/{site_id}/suspend"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/sites/{site_id}/activate"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/sites/{site_id}/key"): Role.ADMINISTRATOR,
    ("GET", "/v1/admin/enrolment-codes"): Role.ADMINISTRATOR,
    ("GET", "/v1/admin/sites/{site_id}/enrolment-codes"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/sites/{site_id}/enrolment-codes"): Role.ADMINISTRATOR,
    ("DELETE", "/v1/admin/sites/{site_id}/enrolment-codes/{code_id}"): Role.ADMINISTRATOR,
    ("DELETE", "/v1/admin/sites/{site_id}"): Role.ADMINISTRATOR,
    ("GET", "/v1/admin/asset-types"): Role.ENGINEER,
    ("GET", "/v1/admin/asset-types/{name}"): Role.ENGINEER,
    ("PUT", "/v1/admin/asset-types/{name}"): Role.ADMINISTRATOR,
    ("GET", "/v1/admin/plans"): Role.ENGINEER,
    ("GET", "/v1/admin/plans/{name}"): Role.ENGINEER,
    ("POST", "/v1/admin/plans"): Role.ADMINISTRATOR,
    ("GET", "/v1/admin/plans/{name}/versions"): Role.ENGINEER,
    ("PUT", "/v1/admin/plans/{name}"): Role.ADMINISTRATOR,
    ("DELETE", "/v1/admin/plans/{name}"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/plans/{name}/archive"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/plans/{name}/restore"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/plans/{name}/pause"): Role.OPERATOR,
    ("POST", "/v1/admin/plans/{name}/resume"): Role.OPERATOR,
    ("POST", "/v1/admin/plans/{name}/trigger"): Role.OPERATOR,
    ("POST", "/v1/admin/plans/{name}/tune"): Role.OPERATOR,
    ("POST", "/v1/admin/runs/{run_id}/cancel"): Role.OPERATOR,
    ("POST", "/v1/admin/models/{name}/promote"): Role.OPERATOR,
    ("POST", "/v1/admin/models/{name}/rollback"): Role.OPERATOR,
    ("POST", "/v1/admin/models/{name}/unlearn"): Role.ADMINISTRATOR,
    ("GET", "/v1/admin/tokens"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/tokens"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/tokens/{token_id}/revoke"): Role.ADMINISTRATOR,
    ("GET", "/v1/admin/audit"): Role.ADMINISTRATOR,
    ("GET", "/v1/admin/audit/verify"): Role.ADMINISTRATOR,
    ("GET", "/v1/events"): Role.VIEWER,
    ("GET", "/metrics"): Role.VIEWER,
    ("GET", "/v1/system/state"): Role.ADMINISTRATOR,
    ("GET", "/v1/admin/webhooks"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/webhooks"): Role.ADMINISTRATOR,
    ("DELETE", "/v1/admin/webhooks/{webhook_id}"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/webhooks/{webhook_id}/enable"): Role.ADMINISTRATOR,
    ("POST", "/v1/admin/webhooks/{webhook_id}/test"): Role.ADMINISTRATOR,
}
RANK = {role: rank for rank, role in enumerate(Role)}


def address(path: str) -> str:
    """An address of the route at which nothing is; of the stream, which has no end, one that does not fit."""
    if path == "/v1/events":
        return f"{path}?after=-1"
    for name in ("name", "version", "run_id", "site_id", "token_id", "code_id", "webhook_id"):
        path = path.replace(f"{{{name}}}", "nothing")
    return path


def test_the_table_above_names_every_route(shared_world: Any) -> None:
    every = {(method, route.path) for route in api_routes() for method in route.methods}
    # The table of the console is in console/test_roles.py.
    found = {(method, path) for method, path in every if not path.startswith("/console")}
    assert found == OPEN | BY_CODE | set(NEEDED) | PROTOCOL
    beside = {route.path for route in shared_world.app.routes if isinstance(route, Route)} - {path for _, path in every}
    assert beside == {"/openapi.json"}
    document = shared_world.app.openapi()
    described = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}
    assert described == found - {("GET", "/"), ("GET", "/docs")}
    roles = {key: document["paths"][key[1]][key[0].lower()].get("x-role") for key in described}
    needed = NEEDED | dict.fromkeys(PROTOCOL, Role.VIEWER)
    assert roles == {key: needed[key].value if key in needed else None for key in described}


@pytest.mark.parametrize(("method", "path"), sorted(OPEN))
def test_an_open_route_needs_no_token(shared_world: Any, method: str, path: str) -> None:
    assert shared_world.call(None, method, path).status_code == 200


@pytest.mark.parametrize(("method", "path"), sorted(NEEDED))
def test_a_route_lets_in_who_may_and_nobody_else(shared_world: Any, method: str, path: str) -> None:
    body = None if method == "GET" else {}
    before = shared_world.snapshot()
    unknown = shared_world.call(None, method, address(path), body)
    assert (unknown.status_code, unknown.json()["code"]) == (401, "unauthenticated")
    assert unknown.headers["WWW-Authenticate"].startswith("Bearer")
    for role in Role:
        answer = shared_world.call(role, method, address(path), body)
        if RANK[role] < RANK[NEEDED[method, path]]:
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), role
            assert NEEDED[method, path].value in answer.json()["detail"]
        else:
            assert answer.status_code not in (401, 403, 405, 500), role
    assert shared_world.snapshot() == before


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "unauthenticated"),
        ("Bearer", "unauthenticated"),
        ("Bearer ", "unauthenticated"),
        ("Basic dXNlcjpwYXNz", "unauthenticated"),
        ("Bearer nothing-like-it", "unauthenticated"),
        (f"Bearer blst_{'0' * 12}_{'0' * 64}", "unauthenticated"),
    ],
)
def test_what_is_no_token_is_turned_away(shared_world: Any, header: str, code: str) -> None:
    answer = shared_world.call(None, "GET", "/v1/models", headers={"Authorization": header})
    assert (answer.status_code, answer.json()["code"]) == (401, code)
    assert "cannot be checked" not in answer.json()["detail"], "which is said where the store is away"


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
def test_the_scheme_of_a_token_is_written_as_a_client_likes(shared_world: Any, scheme: str) -> None:
    header = f"{scheme} {shared_world.tokens[Role.VIEWER]}"
    assert shared_world.call(None, "GET", "/v1/models", headers={"Authorization": header}).status_code == 200


def test_the_secret_of_another_token_does_not_fit(shared_world: Any) -> None:
    viewer, admin = shared_world.tokens[Role.VIEWER], shared_world.tokens[Role.ADMINISTRATOR]
    mixed = "_".join([*admin.split("_")[:2], viewer.split("_")[2]])
    answer = shared_world.call(None, "GET", "/v1/admin/audit", headers={"Authorization": f"Bearer {mixed}"})
    assert answer.status_code == 401


def test_an_unknown_address_below_v1_says_nothing_without_a_token(shared_world: Any) -> None:
    assert shared_world.call(None, "GET", "/v1/nothing").status_code == 401
    assert shared_world.call(Role.VIEWER, "GET", "/v1/nothing").status_code == 404


def test_a_body_is_not_read_before_the_token_is_known(shared_world: Any) -> None:
    answer = shared_world.call(None, "POST", "/v1/models/pumps/diagnose", content=b"{not json")
    assert answer.status_code == 401


def test_an_expired_and_a_revoked_token_are_turned_away(world: Any) -> None:
    past = datetime.now(UTC) - timedelta(days=2)
    expired = issue("old", Role.VIEWER, past, timedelta(days=1))
    revoked = issue("gone", Role.VIEWER, past)
    for made in (expired, revoked):
        world.backend.store.tokens.add(made.stored)
    header = {"Authorization": f"Bearer {revoked.text}"}
    assert world.call(None, "GET", "/v1/models", headers=header).status_code == 200
    world.backend.store.tokens.revoke(revoked.stored.token.token_id)
    for made, code in ((expired, "token_expired"), (revoked, "token_revoked")):
        answer = world.call(None, "GET", "/v1/models", headers={"Authorization": f"Bearer {made.text}"})
        assert (answer.status_code, answer.json()["code"]) == (401, code)


def test_the_use_of_a_token_is_noted_once_a_minute(world: Any) -> None:
    def last_use() -> datetime | None:
        found = {token.role: token.last_used_at for token in world.backend.store.tokens.list_tokens()}
        return found[Role.VIEWER]

    assert last_use() is None
    world.call(Role.VIEWER, "GET", "/v1/runs")
    noted = last_use()
    assert noted is not None
    world.call(Role.VIEWER, "GET", "/v1/runs")
    assert last_use() == noted
