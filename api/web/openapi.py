"""The API's OpenAPI document: problem documents, the role that each operation needs, numbers beyond JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from api.web.auth import METRICS, PROTECTED, PROTOCOL, RequiredPermission
from api.web.errors import MEDIA_TYPE, Finding, Problem
from api.web.idempotency import CHANGES, LONGEST_KEY, METHODS
from services.identity.roles import Permission, least_role

ABOUT: Final = """Diagnoses machines with certified models, and administers their training.

Send the header `Authorization: Bearer <token>` with every request below `/v1`, and of `/metrics`. Roles: a **viewer**
reads and has measurements diagnosed, an **engineer** also sees which plants take part, an **operator** also triggers,
pauses and promotes, an **administrator** also enrols sites and makes plans and tokens. Failures are problem documents
(RFC 9457); their `code` is for programs. Where a number can be infinite, it is then the word "Infinity" or "-Infinity".
Viewers see sites under pseudonyms, stable for each model.
"""

_PROBLEM: Final = {
    "description": "a problem document", "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
}
_PROTOCOL_ERROR: Final = {
    "description": "what is wrong, on one line", "content": {"application/json": {"schema": {
        "type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"],
    }}},
}
"""Below ``/v2`` (``api.web.protocol_errors``)."""
MAY_BE_INFINITE: Final[dict[str, tuple[str, ...]]] = {
    "RoundRecord": ("upper", "lower", "gap"),
    "RoundPoint": ("upper", "lower", "gap"),
    "Run": ("upper", "lower", "gap"),
    "SiteTermsRecord": ("radius", "label_flip_cost"),
    "SiteReport": ("radius", "worst_case_risk", "label_flip_cost"),
    "SiteScore": ("radius", "worst_case_risk", "label_flip_cost"),
    "SiteSettings": ("label_flip_cost",),
    "CertificateReport": ("worst_case_risk", "objective", "lower_bound", "gap"),
    "VersionDetail": ("certified_gap", "worst_case_risk", "objective", "lower_bound"),
    "VersionSummary": ("certified_gap", "worst_case_risk"),
    "TrainingSpec": ("label_flip_cost",),
    "GateResult": ("wanted", "found"),
}
"""Fields, by schema, that can hold what JSON has no number for."""

PUBLISHED_NAMES: Final = {"OptionalReason": "Because"}
"""Schemas that clients know by another name than the code."""

_WORDS: Final = {"type": "string", "enum": ["Infinity", "-Infinity", "NaN"]}


def permission_of(route: APIRoute) -> Permission | None:
    """Permission that a route asks for; None for a route that anybody may call."""
    return next(_permissions(route.dependant), None)


def _permissions(dependant: Dependant) -> Iterator[Permission]:
    if isinstance(dependant.call, RequiredPermission):
        yield dependant.call.permission
    for part in dependant.dependencies:
        yield from _permissions(part)


def document(app: FastAPI, routes: Iterable[APIRoute]) -> dict[str, Any]:
    """OpenAPI document of an application with the given routes."""
    made = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
    schemas = made["components"]["schemas"]
    for model in (Problem, Finding):
        definition = model.model_json_schema(ref_template="#/components/schemas/{model}")
        definition.pop("$defs", None)
        schemas[model.__name__] = definition
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for name, fields in MAY_BE_INFINITE.items():
        for variant in (name, f"{name}-Input", f"{name}-Output"):
            for field in fields if variant in schemas else ():
                _allow_words(schemas[variant]["properties"][field])
    for route in routes:
        if route.include_in_schema:
            for method in route.methods or ():
                _describe(made["paths"][route.path_format][method.lower()], route)
    for name, published in PUBLISHED_NAMES.items():
        schemas[published] = schemas.pop(name) | {"title": published}
        made = json.loads(json.dumps(made).replace(f'/schemas/{name}"', f'/schemas/{published}"'))
    return made


def _describe(operation: dict[str, Any], route: APIRoute) -> None:
    if route.path.startswith(CHANGES) and METHODS & (route.methods or set()):
        operation.setdefault("parameters", []).append({
            "name": "Idempotency-Key", "in": "header", "required": False,
            "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
            "description": "a word of your own for this change: asked again with it within a day, it is made once",
        })
    operation["responses"].pop("422", None)
    told = _PROTOCOL_ERROR if route.path.startswith(PROTOCOL) else _PROBLEM
    operation["responses"] |= {str(int(status)): told for status in _refusals(operation, route)} | {"default": told}
    permission = permission_of(route)
    if permission is not None and route.path.startswith((PROTECTED, METRICS, PROTOCOL)):
        role = least_role(permission).value
        operation["x-role"] = role
        operation["description"] = f"{operation.get('description', '').strip()}\n\nNeeds the role {role}."


def _refusals(operation: dict[str, Any], route: APIRoute) -> list[HTTPStatus]:
    """Statuses of the problem documents that a route answers with while nothing is wrong with the server itself."""
    is_protected, has_body = permission_of(route) is not None, "requestBody" in operation
    is_protocol = route.path.startswith(PROTOCOL)
    changes = route.path.startswith(CHANGES) and bool(METHODS & (route.methods or set()))
    conditional = any(each["name"].lower() == "if-match" for each in operation.get("parameters", ()))
    found = {
        HTTPStatus.UNAUTHORIZED: is_protected,
        HTTPStatus.FORBIDDEN: is_protected or has_body,
        HTTPStatus.NOT_FOUND: "{" in route.path or has_body,
        HTTPStatus.CONFLICT: changes or has_body,
        HTTPStatus.PRECONDITION_FAILED: conditional,
        HTTPStatus.PRECONDITION_REQUIRED: conditional,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: True,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE: has_body,
        HTTPStatus.UNPROCESSABLE_ENTITY: not is_protocol,
        HTTPStatus.BAD_REQUEST: is_protocol,
        HTTPStatus.TOO_MANY_REQUESTS: is_protected or has_body,
        HTTPStatus.SERVICE_UNAVAILABLE: True,
    }
    return [status for status, holds in found.items() if holds and str(int(status)) not in operation["responses"]]


def _allow_words(field: dict[str, Any]) -> None:
    """Let a number, or a number or null, be one of the words too."""
    kinds = field.pop("anyOf", None)
    if kinds is None:
        limits = ("type", "exclusiveMinimum", "minimum", "exclusiveMaximum", "maximum")
        kinds = [{key: field.pop(key) for key in limits if key in field}]
    field["anyOf"] = [*kinds, _WORDS]
