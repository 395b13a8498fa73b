"""What the API refuses, as exceptions: one class for each thing that a caller can do about it."""

from __future__ import annotations

from typing import Any, Final

from services.contracts.errors import BallastError


class ApiError(BallastError):
    """The API did not do what was asked. ``code`` is its stable word, the text its one line.

    ``status`` is 0 where there was no answer at all; ``findings`` say what of a request does not fit, and where;
    ``incident`` is what to look for in the server's log.
    """

    def __init__(
        self, detail: str, *, status: int = 0, code: str = "error", findings: tuple[tuple[str, str], ...] = (),
        incident: str | None = None,
    ) -> None:
        super().__init__(detail, code=code)
        self.status = status
        self.findings = findings
        self.incident = incident


class SignedOutError(ApiError):
    """401: the token is unknown, revoked or expired. Show another."""


class NotAllowedError(ApiError):
    """403: the token's role or scope is too small."""


class NotThereError(ApiError):
    """404 and 405: there is nothing at this address."""


class ChangedMeanwhileError(ApiError):
    """409, 412, 428: it contradicts what is there; read again what is, then decide."""


class InvalidRequestError(ApiError):
    """Others of 400 to 499: the request does not fit; ``findings`` say where."""


class ServerError(ApiError):
    """From 500 on, or an answer that does not fit the contracts of this version of the client."""


class UnreachableError(ApiError):
    """No answer, 429 or 503, also after the last attempt. Try again later."""


class ChangeStoredError(ApiError):
    """503 ``change_stored``: the change is made, but not in force on the plant link yet; do not repeat it."""


class CommitUnknownError(ApiError):
    """503 ``database_commit_unknown``: the change is made or is not, nobody knows; look before you ask again."""


class EventsLostError(ApiError):
    """Some events after the one that was asked for are gone. Go on with ``after=number`` and look what changed."""

    def __init__(self, number: int) -> None:
        super().__init__(f"events before number {number + 1} are not kept any more", code="events_lost")
        self.number = number


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    401: SignedOutError, 403: NotAllowedError, 404: NotThereError, 405: NotThereError, 409: ChangedMeanwhileError,
    412: ChangedMeanwhileError, 428: ChangedMeanwhileError, 429: UnreachableError, 502: UnreachableError,
    503: UnreachableError, 504: UnreachableError,
}
_BY_CODE: Final[dict[object, type[ApiError]]] = {
    "change_stored": ChangeStoredError, "database_commit_unknown": CommitUnknownError,
}


def error_of(status: int, problem: Any) -> ApiError:
    """Exception of a problem document (RFC 9457), or of what a proxy says in its place."""
    told = problem if isinstance(problem, dict) else {}
    code, found = str(told.get("code") or "error"), told.get("errors")
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status)
    kind = kind or (InvalidRequestError if status < 500 else ServerError)
    ours = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return kind(
        str(told.get("detail") or f"the server answered with status {status}"), status=status,
        code=code, incident=told.get("incident"),
        findings=tuple((str(each["where"]), str(each["what"])) for each in ours if {"where", "what"} <= each.keys()),
    )
