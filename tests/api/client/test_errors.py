"""What the API refuses as an exception: a class for each thing that a caller can do about it, and what it carries."""

from __future__ import annotations

import pytest

from api.client.errors import (
    ApiError,
    ChangedMeanwhileError,
    ChangeStoredError,
    CommitUnknownError,
    EventsLostError,
    InvalidRequestError,
    NotAllowedError,
    NotThereError,
    ServerError,
    SignedOutError,
    UnreachableError,
    error_of,
)


@pytest.mark.parametrize(("status", "kind"), [
    (401, SignedOutError), (403, NotAllowedError), (404, NotThereError), (405, NotThereError),
    (409, ChangedMeanwhileError), (412, ChangedMeanwhileError), (428, ChangedMeanwhileError),
    (400, InvalidRequestError), (413, InvalidRequestError), (415, InvalidRequestError), (422, InvalidRequestError),
    (429, UnreachableError), (502, UnreachableError), (503, UnreachableError), (504, UnreachableError),
    (500, ServerError), (501, ServerError),
])
def test_a_status_has_its_class_also_where_a_proxy_answers(status: int, kind: type[ApiError]) -> None:
    for problem in ({"detail": "so it is", "code": "word"}, "<html>Bad gateway</html>", None, ["x"]):
        found = error_of(status, problem)
        assert type(found) is kind and found.status == status
    assert str(error_of(status, None)) == f"the server answered with status {status}"
    assert (error_of(status, {"code": "word"}).code, error_of(status, None).code) == ("word", "error")


def test_a_change_that_is_stored_is_told_apart_from_a_server_that_is_away() -> None:
    assert type(error_of(503, {"detail": "x", "code": "change_stored"})) is ChangeStoredError
    assert type(error_of(503, {"detail": "x", "code": "database_commit_unknown"})) is CommitUnknownError
    for kind in (ChangeStoredError, CommitUnknownError):
        assert not issubclass(kind, UnreachableError), "it must not be repeated"


def test_findings_and_the_incident_come_along() -> None:
    found = error_of(422, {"detail": "x", "errors": [{"where": "body.days", "what": "too many", "more": 1}]})
    assert found.findings == (("body.days", "too many"),) and found.incident is None
    assert error_of(500, {"detail": "x", "incident": "abc123"}).incident == "abc123"


@pytest.mark.parametrize("errors", [
    [{"code": 1000, "message": "the gateway's own words"}], ["words"], {"name": ["words"]}, 7, [{"where": "body"}],
])
def test_errors_of_a_gateway_in_other_words_are_no_findings(errors: object) -> None:
    found = error_of(403, {"errors": errors, "code": ["list"]})
    assert type(found) is NotAllowedError and found.findings == ()


def test_events_that_are_lost_say_after_which_one_to_go_on() -> None:
    lost = EventsLostError(41)
    assert (lost.number, lost.code, str(lost)) == (41, "events_lost", "events before number 42 are not kept any more")
