"""What may stand in the query of an address: a filter that a route does not know is refused, not passed over."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute


def refuse_unknown(request: Request) -> None:
    """Raise ``RequestValidationError`` where the query has a parameter that the request's route does not take.

    An answer to ``?state=failed`` that lists all runs would be taken for the failed ones.
    """
    if not request.query_params:
        return
    route = request.scope.get("route")
    known = set(_names(route.dependant)) if isinstance(route, APIRoute) else set()
    what = f"no such parameter; known here: {', '.join(sorted(known))}" if known else "this address takes no parameters"
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        raise RequestValidationError([
            {"type": "unknown_parameter", "loc": ("query", name), "msg": what} for name in unknown
        ])


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for part in dependant.dependencies:
        yield from _names(part)
