"""Every address of the console with every role, without a session, and without the form's token."""

from __future__ import annotations

import re
from typing import Any

import pytest

from api.app import api_routes
from api.console.forms import PostedForm
from api.web.openapi import permission_of
from services.contracts.access.identity import Role
from services.identity.roles import least_role

OPEN = {
    ("GET", "/console/sign-in"), ("POST", "/console/sign-in"), ("GET", "/console/sign-in/oidc"),
    ("GET", "/console/sign-in/oidc/callback"), ("GET", "/console/static/{name:path}"),
}
NEEDED = {
    ("GET", "/console"): Role.VIEWER,
    ("GET", "/console/components"): Role.VIEWER,
    ("GET", "/console/privacy"): Role.VIEWER,
    ("POST", "/console/sign-out"): Role.VIEWER,
    ("GET", "/console/runs"): Role.VIEWER,
    ("GET", "/console/runs/compare"): Role.VIEWER,
    ("GET", "/console/runs/{run_id}"): Role.VIEWER,
    ("GET", "/console/runs/{run_id}/events"): Role.VIEWER,
    ("POST", "/console/runs/{run_id}/cancel"): Role.OPERATOR,
    ("GET", "/console/models"): Role.VIEWER,
    ("GET", "/console/models/{name}"): Role.VIEWER,
    ("GET", "/console/models/{name}/versions/{version}"): Role.VIEWER,
    ("GET", "/console/models/{name}/versions/{version}/fairness"): Role.VIEWER,
    ("POST", "/console/models/{name}/versions/{version}/promote"): Role.OPERATOR,
    ("POST", "/console/models/{name}/rollback"): Role.OPERATOR,
    ("POST", "/console/models/{name}/unlearn"): Role.ADMINISTRATOR,
    ("GET", "/console/diagnose"): Role.VIEWER,
    ("GET", "/console/models/{name}/diagnose"): Role.VIEWER,
    ("POST", "/console/models/{name}/diagnose"): Role.VIEWER,
    ("GET", "/console/plans"): Role.ENGINEER,
    ("POST", "/console/plans"): Role.ADMINISTRATOR,
    ("GET", "/console/plans/{name}"): Role.ENGINEER,
    ("POST", "/console/plans/{name}/check"): Role.ADMINISTRATOR,
    ("POST", "/console/plans/{name}/save"): Role.ADMINISTRATOR,
    ("POST", "/console/plans/{name}/trigger"): Role.OPERATOR,
    ("POST", "/console/plans/{name}/tune"): Role.OPERATOR,
    ("POST", "/console/plans/{name}/pause"): Role.OPERATOR,
    ("POST", "/console/plans/{name}/resume"): Role.OPERATOR,
    ("POST", "/console/plans/{name}/archive"): Role.ADMINISTRATOR,
    ("POST", "/console/plans/{name}/restore"): Role.ADMINISTRATOR,
    ("GET", "/console/audit"): Role.ADMINISTRATOR,
    ("GET", "/console/system"): Role.ADMINISTRATOR,
    ("GET", "/console/admin"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/sites"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/sites/{site_id}/suspend"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/sites/{site_id}/activate"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/sites/{site_id}/remove"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/sites/{site_id}/key"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/codes"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/sites/{site_id}/codes/{code_id}/revoke"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/tokens"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/tokens/{token_id}/revoke"): Role.ADMINISTRATOR,
    ("POST", "/console/admin/sessions/{session_id}/end"): Role.ADMINISTRATOR,
}
RANK = {role: rank for rank, role in enumerate(Role)}
CHANGING = sorted(path for method, path in NEEDED if method == "POST")


def routes() -> list[Any]:
    return [route for route in api_routes() if route.path.startswith("/console")]


def address(path: str) -> str:
    """An address of the route at which nothing is."""
    for name in ("name", "version", "run_id", "site_id", "token_id", "session_id", "code_id"):
        path = path.replace(f"{{{name}}}", "nothing")
    return path + ("?left=nothing&right=nothing" if path.endswith("compare") else "")


def test_the_table_above_names_every_route_with_the_role_that_it_asks_for() -> None:
    found = {
        (method, route.path): None if permission_of(route) is None else least_role(permission_of(route))
        for route in routes() for method in route.methods
    }
    assert found == {key: None for key in OPEN} | NEEDED


def test_every_form_is_checked_for_where_it_comes_from() -> None:
    for route in routes():
        checks = [part.call for part in route.dependant.dependencies if isinstance(part.call, PostedForm)]
        assert len(checks) == (1 if "POST" in route.methods else 0), route.path
        assert not checks or checks[0].signed_in == (route.path != "/console/sign-in"), route.path


@pytest.mark.parametrize(("method", "path"), sorted(NEEDED))
def test_a_page_lets_in_who_may_and_sends_others_away(
    shared_world: Any, people: dict[Role, Any], somebody: Any, method: str, path: str
) -> None:
    unknown = somebody(shared_world).call(method, address(path), headers={"Origin": "https://ballast"})
    assert unknown.status_code == 303
    assert unknown.headers["Location"].startswith("/console/sign-in")
    if path == "/console/sign-out":
        return

    def asked(role: Role) -> Any:
        return people[role].get(address(path)) if method == "GET" else people[role].post(address(path))

    refused = [role for role in Role if RANK[role] < RANK[NEEDED[method, path]]]
    before = shared_world.snapshot() if refused and method == "POST" else {}
    for role in refused:
        answer = asked(role)
        assert answer.status_code == 403, role
        assert NEEDED[method, path].value in answer.text
    assert not before or shared_world.snapshot() == before
    for role in [role for role in Role if role not in refused]:
        answer = asked(role)
        assert answer.status_code not in (401, 403, 405, 500), (role, answer.text)


def test_a_token_that_is_narrowed_is_narrowed_here_too(world: Any, somebody: Any) -> None:
    from api.backend.actor import Actor
    from api.tokens import service
    from api.tokens.schemas import TokenRequest

    wanted = TokenRequest(name="a gateway", role=Role.ADMINISTRATOR, scopes=("diagnose",))
    person = somebody(world)
    person.sign_in(service.create(world.backend, Actor("test", Role.ADMINISTRATOR), wanted).token)
    assert person.get("/console/admin").status_code == 403
    assert person.get("/console").status_code == 403
    assert person.get("/console/models/pumps/diagnose").status_code == 200


@pytest.mark.parametrize("role", list(Role))
def test_no_page_offers_a_form_that_its_reader_may_not_send(people: Any, role: Role) -> None:
    """What is offered and refused reads as a failure; what is not offered is not missed."""
    asks = {re.sub(r"{[^}]+}", "[^/]+", path): NEEDED["POST", path] for path in CHANGING}
    offered = set[Role]()
    for path in ("/console", "/console/plans", "/console/plans/pumps", "/console/models/pumps", "/console/runs"):
        forms = re.findall(r"<form[^>]*>", people[role].get(path).text)
        for action in [re.findall(r'action="([^"?]+)', form)[0] for form in forms if 'method="post"' in form]:
            (least,) = [each for pattern, each in asks.items() if re.fullmatch(pattern, action)]
            assert RANK[role] >= RANK[least], (path, action)
            offered.add(least)
    assert max(offered, key=RANK.__getitem__) is (Role.VIEWER if role is Role.ENGINEER else role)
