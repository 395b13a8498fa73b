"""The API's OpenAPI document: problem documents, the role that each operation needs, numbers beyond JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from api.web.auth import PROTECTED, RequiredPermission
from api.web.errors import MEDIA_TYPE, Finding, Problem
from services.identity.roles import Permission, least_role

ABOUT: Final = """Diagnoses machines with certified models, and administers their training.

Send the header `Authorization: Bearer <token>` with every request below `/v1`. Roles: a **viewer** reads and has
measurements diagnosed, an **operator** also triggers, pauses and promotes, an **administrator** also enrols sites and
makes plans and tokens. Failures are problem documents (RFC 9457); their `code` is for programs. Where a number can be
infinite, it is then the word "Infinity" or "-Infinity". Viewers see sites under pseudonyms, stable for each model.
"""

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
    operation["responses"].pop("422", None)
    schema = {"$ref": "#/components/schemas/Problem"}
    operation["responses"]["default"] = {
        "description": "a problem document", "content": {MEDIA_TYPE: {"schema": schema}},
    }
    permission = permission_of(route)
    if permission is not None and route.path.startswith(PROTECTED):
        role = least_role(permission).value
        operation["x-role"] = role
        operation["description"] = f"{operation.get('description', '').strip()}\n\nNeeds the role {role}."


def _allow_words(field: dict[str, Any]) -> None:
    """Let a number, or a number or null, be one of the words too."""
    kinds = field.pop("anyOf", None)
    if kinds is None:
        limits = ("type", "exclusiveMinimum", "minimum", "exclusiveMaximum", "maximum")
        kinds = [{key: field.pop(key) for key in limits if key in field}]
    field["anyOf"] = [*kinds, _WORDS]
