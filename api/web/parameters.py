"""What may stand in the query of an address: a filter that a route does not know is refused, not passed over.

So is one that is said twice where the route takes one value, for the other value would be passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import QueryParams


def refuse_unknown(request: Request) -> None:
    """Raise ``RequestValidationError`` where the query has a parameter that the request's route does not take.

    An answer to ``?state=failed`` that lists all runs would be taken for the failed ones.
    """
    if not request.query_params:
        return
    route = request.scope.get("route")
    known = dict(_kinds(route.dependant)) if isinstance(route, APIRoute) else {}
    check_query(request.query_params, {name: _takes_many(kind) for name, kind in known.items()})


def check_query(query: QueryParams, known: Mapping[str, bool]) -> None:
    """Raise ``RequestValidationError`` where a query has a parameter that is not ``known``, or one twice.

    ``known``: by name, whether a parameter may be said several times.
    """
    what = f"no such parameter; known here: {', '.join(sorted(known))}" if known else "this address takes no parameters"
    names = list(dict.fromkeys(query))
    wrong = [("unknown_parameter", name, what) for name in names if name not in known] or [
        ("parameter_twice", name, "this is said twice; say it once")
        for name in names if len(query.getlist(name)) > 1 and not known[name]
    ]
    if wrong:
        raise RequestValidationError([
            {"type": kind, "loc": ("query", name), "msg": said} for kind, name, said in wrong
        ])


def _kinds(dependant: Dependant) -> Iterator[tuple[str, Any]]:
    """Name and type of each parameter."""
    yield from ((field.alias, field.field_info.annotation) for field in dependant.query_params)
    for part in dependant.dependencies:
        yield from _kinds(part)


def _takes_many(kind: Any) -> bool:
    """Whether a type is a list, or may be one."""
    return any(get_origin(part) is list for part in (kind, *get_args(kind)))
