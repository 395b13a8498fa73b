from __future__ import annotations

import gzip
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError

from api.backend.nats_users import ChangeStoredError
from api.web.errors import STATUS, Problem, ballast_problem, status_of, validation_problem
from api.web.limits import LARGEST_BODY_BYTES
from services.contracts.access.identity import Role
from services.contracts.errors import BallastError, ConflictError, InvalidInputError, NotFoundError, UnavailableError
from services.identity.errors import ForbiddenError, UnauthenticatedError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidInputError("x"), 422),
        (NotFoundError("x"), 404),
        (ConflictError("x"), 409),
        (ConflictError("x", code="run_unfinished"), 409),
        (UnavailableError("x", code="database_read_only"), 503),
        (UnauthenticatedError("x", code="token_expired"), 401),
        (ForbiddenError("x"), 403),
        (InvalidInputError("x", code="too_large"), 413),
        (BallastError("x"), 500),
        (BallastError("x", code="damaged_state"), 500),
    ],
)
def test_a_code_or_else_its_class_has_a_status(error: BallastError, status: int) -> None:
    assert status_of(error) == status


@pytest.mark.parametrize(("error", "headers"), [
    (UnauthenticatedError("x"), {"www-authenticate": 'Bearer realm="ballast"'}),
    (BallastError("x", code="too_many_attempts"), {"retry-after": "60"}),
    (UnavailableError("x"), {"retry-after": "5"}),
    (ChangeStoredError("x"), {}),
    (UnavailableError("x", code="database_commit_unknown"), {}),
    (ForbiddenError("x"), {}),
])
def test_who_may_ask_again_is_told_when(error: BallastError, headers: dict[str, str]) -> None:
    told = dict(ballast_problem(error).headers)
    assert {name: value for name, value in told.items() if not name.startswith("content-")} == headers
    assert told["content-type"] == "application/problem+json"


def test_an_error_that_nobody_raised_on_purpose_tells_nothing_of_its_cause() -> None:
    response = ballast_problem(BallastError("the row of plant-7"))
    assert response.status_code == 500 and b"plant-7" not in response.body and b'"incident"' in response.body


def test_of_many_findings_five_are_said_and_a_hundred_are_listed() -> None:
    def refused(n: int) -> Problem:
        items = [{"type": "missing", "loc": ("body", "x", i), "msg": "Field required", "input": "s"} for i in range(n)]
        return Problem.model_validate_json(bytes(validation_problem(RequestValidationError(items, body={})).body))

    assert refused(5).detail.count("Field required") == 5 and "more" not in refused(5).detail
    assert refused(6).detail.endswith("; and 1 more") and len(refused(6).errors or ()) == 6
    assert len(refused(101).errors or ()) == 100 and refused(101).detail.endswith("; and 96 more")


def test_a_list_that_is_short_of_what_does_not_fit_is_no_finding_of_its_own() -> None:
    short = {"type": "too_short", "loc": ("body", "samples"), "msg": "too short", "input": []}
    for inner, found in ((("body", "samples", 0), ["body.samples.0"]), (("body", "other", 0), ["body.samples", None])):
        items = [short, {"type": "missing", "loc": inner, "msg": "Field required", "input": {}}]
        response = validation_problem(RequestValidationError(items, body={}))
        told = Problem.model_validate_json(bytes(response.body)).errors or ()
        assert [each.where for each in told][: len(found)][0] == found[0] and len(told) == len(found)


@pytest.mark.parametrize(("method", "path", "body", "said"), [
    ("POST", "/v1/admin/sites/Plant%209/enrolment-codes", None, "a name has 1 to 40 lower-case letters"),
    ("POST", "/v1/admin/sites/plant-9/enrolment-codes", {"expires_in": 7}, "known here: asset_type, expires_hours"),
    ("POST", "/v1/admin/sites/plant-9/enrolment-codes", {"certificate_sha256": "aa:bb"}, "give 64 digits from 0 to 9"),
    ("POST", "/v1/admin/tokens", {"name": "a\nb", "role": "viewer"}, "give a name on one line"),
    ("POST", "/v1/models/pump-leak/diagnose", {"samples": [], "alias": "a b"}, "a version's number or alias has 1 to"),
    ("POST", "/v1/models/pump-leak/diagnose", {"samples": []}, "Input should have at least 1 item, not 0"),
])
def test_a_refusal_says_what_would_be_right_and_no_pattern(
    lasting_world: Any, method: str, path: str, body: Any, said: str
) -> None:
    answer = lasting_world.call(Role.ADMINISTRATOR, method, path, body)
    assert answer.status_code == 422 and said in answer.json()["detail"]
    assert not any(word in answer.text for word in ("pattern", "Extra inputs", "Tuple", "after validation"))


def test_every_status_is_an_error() -> None:
    assert all(400 <= status < 600 for status in STATUS.values())


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/nothing", 404, "not_found"),
        ("PATCH", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/runs/unknown", 404, "not_found"),
        ("GET", f"/v1/runs/{'0' * 32}/rounds", 404, "not_found"),
        ("GET", "/v1/runs/%00", 422, "invalid_input"),
        ("GET", "/v1/runs?plan=%00", 422, "invalid_input"),
        ("GET", "/v1/runs?status=done", 422, "invalid_input"),
        ("GET", "/v1/runs?limit=0", 422, "invalid_input"),
        ("GET", "/v1/runs?state=failed", 422, "invalid_input"),
        ("POST", "/v1/admin/plans/nobody/pause?dry_run=1", 422, "invalid_input"),
        ("GET", f"/v1/runs?offset={10**30}", 422, "invalid_input"),
        ("GET", "/v1/models/pumps/versions/0", 404, "not_found"),
        ("GET", f"/v1/models/pumps/versions/{10**30}", 404, "not_found"),
        ("GET", "/v1/models/pumps/versions/'%20OR%201=1", 404, "not_found"),
        ("GET", "/v1/models/nobody/versions/1/report.html", 404, "not_found"),
        ("DELETE", "/v1/admin/sites/nobody", 404, "not_found"),
    ],
)
def test_a_refusal_is_a_problem_document(lasting_world: Any, method: str, path: str, status: int, code: str) -> None:
    answer = lasting_world.call(Role.ADMINISTRATOR, method, path)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate(answer.json())
    assert (answer.status_code, problem.status, problem.code) == (status, status, code)
    assert problem.type == f"urn:ballast:problem:{code}"
    assert problem.detail


def test_a_wrong_method_is_told_every_method_of_the_address(shared_world: Any) -> None:
    for path, operations in shared_world.app.openapi()["paths"].items():
        answer = shared_world.call(Role.VIEWER, "PATCH", path.replace("{", "").replace("}", ""))
        taken = {method.upper() for method in operations} | ({"HEAD"} if "get" in operations else set())
        assert (answer.status_code, set(answer.headers["Allow"].split(", "))) == (405, taken), path
    assert shared_world.call(None, "PATCH", "/openapi.json").headers["Allow"] in ("GET, HEAD", "HEAD, GET")


def test_a_body_that_is_not_json_is_refused(shared_world: Any) -> None:
    path = "/v1/models/pumps/diagnose"
    json_type = {"Content-Type": "application/json"}
    answer = shared_world.call(Role.VIEWER, "POST", path, content=b'{"sample": {"flow_mean": 3.', headers=json_type)
    assert answer.status_code == 422
    assert "not JSON" in answer.json()["detail"]
    plain = {"Content-Type": "text/plain"}
    answer = shared_world.call(Role.VIEWER, "POST", path, content=b"flow_mean=3", headers=plain)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    answer = shared_world.call(Role.VIEWER, "POST", path, content=b"\xff\xfe", headers=json_type)
    assert answer.status_code in (400, 422)
    answer = shared_world.call(Role.VIEWER, "POST", path, content=b"[" * 100_000, headers=json_type)
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("kind", ["text/json", "application/json, text/plain", "application/jsonp"])
def test_what_is_not_said_to_be_json_is_not_read(shared_world: Any, kind: str) -> None:
    body, headers = b'{"sample": {"flow_mean": 3.0}}', {"Content-Type": kind}
    answer = shared_world.call(Role.VIEWER, "POST", "/v1/models/pumps/diagnose", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_a_compressed_body_is_told_so(shared_world: Any, kind: str) -> None:
    body, headers = gzip.compress(b'{"flow_mean": 3.0}'), {"Content-Type": kind, "Content-Encoding": "gzip"}
    answer = shared_world.call(Role.VIEWER, "POST", "/v1/models/pumps/diagnose", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert "Content-Encoding" in answer.json()["detail"] and answer.headers["Accept-Encoding"] == "identity"


def test_a_body_over_the_limit_is_refused_said_or_unsaid(shared_world: Any) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(LARGEST_BODY_BYTES // 1_000_000 + 2):
            yield b" " * 1_000_000

    path, headers = "/v1/models/pumps/diagnose", {"Content-Type": "application/json"}
    for content in (b" " * (LARGEST_BODY_BYTES + 1), pieces()):
        answer = shared_world.call(Role.VIEWER, "POST", path, content=content, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    whole = shared_world.call(Role.VIEWER, "POST", path, content=b" " * LARGEST_BODY_BYTES, headers=headers)
    assert whole.status_code == 422, "a body of the limit's size is read"


def test_an_unexpected_error_says_only_where_to_look(
    world: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("the secret 4711")

    monkeypatch.setattr(world.app.state.backend.store.runs, "list_runs", broken)
    with caplog.at_level(logging.ERROR, "ballast.api"):
        answer = world.call(Role.VIEWER, "GET", "/v1/runs")
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (500, "internal_error")
    assert "4711" not in answer.text
    assert problem["incident"] in problem["detail"]
    assert problem["incident"] in caplog.text


def test_answers_keep_out_of_caches_and_frames(shared_world: Any) -> None:
    for path in ("/", "/v1/models", "/nothing"):
        headers = shared_world.call(Role.VIEWER, "GET", path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]


def test_a_body_that_is_no_text_does_not_fit(shared_world: Any) -> None:
    answer = shared_world.call(
        Role.VIEWER, "POST", "/v1/models/pumps/diagnose", content=b"\xff{", headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert answer.json()["detail"] == "the body cannot be read: send JSON in UTF-8, not nested deeply"


def test_a_parameter_that_takes_one_value_is_said_once(shared_world: Any) -> None:
    for path in ("/v1/runs?plan=pumps&plan=valves", "/v1/runs?limit=1&limit=1"):
        answer = shared_world.call(Role.VIEWER, "GET", path)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), path
        assert answer.json()["errors"][0]["what"] == "this is said twice; say it once"
    assert shared_world.call(Role.VIEWER, "HEAD", "/v1/events?kind=run.failed&kind=run.begun").status_code == 200


def test_a_parameter_that_a_route_does_not_know_is_named_with_those_that_it_knows(lasting_world: Any) -> None:
    answer = lasting_world.call(Role.VIEWER, "GET", "/v1/runs?state=failed&plan=pumps&State=x")
    known = "no such parameter; known here: cursor, limit, offset, plan, status"
    assert answer.json()["errors"] == [{"where": f"query.{name}", "what": known} for name in ("state", "State")]
    assert lasting_world.call(Role.VIEWER, "GET", "/v1/runs?status=failed&plan=pumps&limit=3").status_code == 200
    none = lasting_world.call(Role.VIEWER, "GET", "/v1/models/pumps?x=1")
    assert none.status_code == 422 and none.json()["detail"] == "query.x: this address takes no parameters"
    protocol = lasting_world.call(Role.VIEWER, "GET", "/v2/models/pumps?x=1")
    assert protocol.status_code == 400 and protocol.json() == {"error": "query.x: this address takes no parameters"}
    assert lasting_world.call(None, "GET", "/v1/runs?state=failed").status_code == 401
    secret = lasting_world.call(Role.VIEWER, "GET", "/v1/admin/tokens?x=1")
    assert secret.status_code == 403, "who may not ask learns no parameters"
