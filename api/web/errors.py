"""Every failure as a problem document (RFC 9457); the one place that knows how a code becomes an HTTP status."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, get_args

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from api.backend.nats_users import ChangeStoredError
from services.contracts.base import place_of
from services.contracts.errors import BallastError
from services.contracts.reading import in_plain_words
from services.contracts.unknown_keys import unknown_key
from services.round_store.database.failures import COMMIT_UNKNOWN

LOG = logging.getLogger("ballast.api")
MEDIA_TYPE: Final = "application/problem+json"
RETRY_SECONDS: Final = "5"
ATTEMPTS_SECONDS: Final = "60"

STATUS: Final[Mapping[str, HTTPStatus]] = {
    "unauthenticated": HTTPStatus.UNAUTHORIZED,
    "forbidden": HTTPStatus.FORBIDDEN,
    "not_found": HTTPStatus.NOT_FOUND,
    "method_not_allowed": HTTPStatus.METHOD_NOT_ALLOWED,
    "conflict": HTTPStatus.CONFLICT,
    "precondition_failed": HTTPStatus.PRECONDITION_FAILED,
    "precondition_required": HTTPStatus.PRECONDITION_REQUIRED,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too_many_attempts": HTTPStatus.TOO_MANY_REQUESTS,
    "unsupported_media_type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "invalid_input": HTTPStatus.UNPROCESSABLE_ENTITY,
    "internal_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
}
"""HTTP status by code. A code that is not here has the status of its error class's own code."""

_CODE_OF_STATUS: Final = {int(status): code for code, status in STATUS.items()}


class Finding(BaseModel):
    """One thing in a request that does not fit, without the value itself."""

    where: str = Field(description="path to it, such as body.samples.0.flow_mean")
    what: str


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    type: str = Field(examples=["urn:ballast:problem:not_found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["model pump with alias champion is not in the registry"])
    code: str = Field(description="stable word for programs", examples=["not_found"])
    errors: tuple[Finding, ...] | None = Field(default=None, description="findings, where the request does not fit")
    incident: str | None = Field(default=None, description="what to look for in the server's log")


def status_of(error: BallastError) -> HTTPStatus:
    """HTTP status of an error: by its code, else by the code of its class or the nearest base class that has one."""
    codes = [error.code, *(str(vars(kind)["code"]) for kind in type(error).__mro__ if "code" in vars(kind))]
    return next((STATUS[code] for code in codes if code in STATUS), HTTPStatus.INTERNAL_SERVER_ERROR)


def problem(
    status: HTTPStatus,
    code: str,
    detail: str,
    *,
    findings: Sequence[Finding] | None = None,
    incident: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Response with a problem document."""
    body = Problem(
        type=f"urn:ballast:problem:{code}", title=status.phrase, status=status.value, detail=detail, code=code,
        errors=tuple(findings) if findings else None, incident=incident,
    )
    text = body.model_dump_json(exclude_none=True)
    return Response(text, status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def ballast_problem(error: BallastError) -> Response:
    """Problem document of an error that the service raised on purpose."""
    status = status_of(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return unexpected_problem(error)
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="ballast"'
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        headers["Retry-After"] = ATTEMPTS_SECONDS
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        if error.code not in (ChangeStoredError.code, COMMIT_UNKNOWN):  # those are not to be asked again
            headers["Retry-After"] = RETRY_SECONDS
        LOG.warning("%s: %s", error.code, error)
    return problem(status, error.code, str(error), headers=headers)


def unexpected_problem(error: Exception) -> Response:
    """Problem document that says nothing of the cause, which goes to the log under the incident's number."""
    incident = secrets.token_hex(8)
    LOG.error("incident %s: %s", incident, type(error).__name__, exc_info=error)
    detail = f"an unexpected error; the server's log has it as incident {incident}"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", detail, incident=incident)


def http_problem(error: HTTPException, methods: str = "") -> Response:
    """Problem document of what the framework refuses: an unknown path, a wrong method, an unreadable body.

    ``methods`` are those that the address takes, for the header ``Allow`` of a 405.
    """
    status = HTTPStatus(error.status_code)
    if status == HTTPStatus.BAD_REQUEST:  # what the framework says of a body that is not even text
        unreadable = HTTPStatus.UNPROCESSABLE_ENTITY
        return problem(unreadable, "invalid_input", "the body cannot be read: send JSON in UTF-8, not nested deeply")
    details = {404: "there is nothing at this address", 405: "this address does not take that method"}
    detail = details.get(error.status_code, str(error.detail))
    headers = dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED and methods:
        headers["Allow"] = methods
    return problem(status, _CODE_OF_STATUS.get(error.status_code, "http_error"), detail, headers=headers)


def validation_problem(error: RequestValidationError, body: type[BaseModel] | None = None) -> Response:
    """Problem document of a request that does not fit its contract: where and what, never the value.

    With the contract of the ``body``, a key that it does not know comes with the one that was meant.
    """
    all_items = error.errors()
    found = [_finding(item, body) for item in all_items if not _follows(item, all_items)]
    if isinstance(error.body, bytes):  # the framework has not read it: its header does not say that it is JSON
        status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        return problem(status, "unsupported_media_type", "send JSON with the header Content-Type: application/json")
    detail = "; ".join(f"{item.where}: {item.what}" for item in found[:5])
    if len(found) > 5:
        detail += f"; and {len(found) - 5} more"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_input", detail, findings=found[:100])


def _follows(item: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a list is too short only because items of it do not fit, which is told of each."""
    place = tuple(item["loc"])
    return item["type"] == "too_short" and any(
        len(other["loc"]) > len(place) and tuple(other["loc"][: len(place)]) == place for other in others
    )


_OF_JSON = {
    "tuple_type": "Input should be a list", "model_type": "Input should be an object",
    "model_attributes_type": "Input should be an object", "dict_type": "Input should be an object",
}
"""What is wanted where JSON has another kind of value: it knows no tuples, and no dictionaries."""


def _finding(item: Mapping[str, Any], body: type[BaseModel] | None) -> Finding:
    if item["type"] == "json_invalid":
        return Finding(where="body", what=f"not JSON: {item['ctx']['error']} at character {item['loc'][-1]}")
    where = ".".join(str(part)[:80] for part in place_of(item["loc"]))
    if item["type"] == "extra_forbidden" and body is not None and item["loc"][0] == "body":
        return Finding(where=where, what=unknown_key(body, item["loc"][1:]))
    return Finding(where=where, what=_OF_JSON.get(item["type"]) or in_plain_words(item))


def install(
    app: FastAPI, routes: Sequence[APIRoute], dressed: Callable[[Request, Response], Response] = lambda _, made: made
) -> None:
    """Answer every failure of an application with these routes with a problem document, ``dressed`` for who asked."""

    def answer(request: Request, error: Exception) -> Response:
        return dressed(request, found(request, error))

    def found(request: Request, error: Exception) -> Response:
        if isinstance(error, BallastError):
            return ballast_problem(error)
        if isinstance(error, RequestValidationError):
            return validation_problem(error, _body_of(request.scope.get("route")))
        if isinstance(error, HTTPException):
            return http_problem(error, _methods(routes, request.scope))
        return unexpected_problem(error)

    for kind in (Exception, BallastError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


def _body_of(route: object) -> type[BaseModel] | None:
    """Contract of a route's body, also of one that may be left out; None where it has none, or one of several kinds."""
    field = route.body_field if isinstance(route, APIRoute) else None
    said = None if field is None else field.field_info.annotation
    kinds = [kind for kind in (said, *get_args(said)) if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return kinds[0] if len(kinds) == 1 else None


def _methods(routes: Sequence[APIRoute], scope: Scope) -> str:
    """Methods that an address takes: those of every route at it, where the framework knows of the first alone."""
    taken = {method for route in routes if route.matches(scope)[0] is not Match.NONE for method in route.methods or ()}
    return ", ".join(sorted(taken | ({"HEAD"} if "GET" in taken else set())))
