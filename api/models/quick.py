"""Predictions without a detour: what fits without question is answered at once, everything else by the contract.

The route of a prediction is a usual one, with its contract, its documentation and its permission. Before it goes its
way, the request is read into arrays here. Whatever is not plain (another form, a sample that does not fit, a word for a
number) is left to the contract, which says what is wrong; so there is one place that refuses, and it is not this one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from api.models import lines
from api.models.answers import KINDS, Kind
from api.web.authenticator import NO_TOKEN, Caller
from api.web.repeated_keys import may_repeat, refuse_repeated, repeated_key
from services.contracts.errors import InvalidInputError
from services.contracts.evaluation.diagnosis import MOST_SAMPLES, DiagnoseRequest
from services.identity.errors import UnauthenticatedError
from services.identity.roles import Permission, require
from services.predictor.cache import PredictorCache, Served

IN_PLACE = 16
"""Samples that are answered where the request is read: fewer microseconds than handing them to a thread takes."""
NEITHER = f"send JSON as Content-Type: application/json, or a sample a line as Content-Type: {lines.MEDIA_TYPE}"
IN_PLACE_BYTES = 16 * 1024  # larger bodies are parsed in a thread, so that others are answered meanwhile


@dataclass(frozen=True)
class Asked:
    """A request that was read: what it says beside the samples, and these."""

    request: DiagnoseRequest
    samples: list[Mapping[str, float]]


class PredictionRoute(APIRoute):
    """Route of :func:`api.models.endpoints.diagnose` or ``estimate``, with the quick way and the one of lines."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Handler that tries the quick way first."""
        whole, kind = super().get_route_handler(), KINDS[self.name]

        async def handle(request: Request) -> Response:
            caller: Caller | None = getattr(request.state, "caller", None)
            if caller is None:
                raise UnauthenticatedError(NO_TOKEN)
            require(caller.token, Permission.DIAGNOSE)
            content = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if content == lines.MEDIA_TYPE:
                return await lines.answer(request, kind)
            if not _is_json(content):
                raise InvalidInputError(NEITHER, code="unsupported_media_type")
            if asked := list(request.query_params):
                raise InvalidInputError(_not_in_query(asked[0], kind))
            if content == "application/json":
                found = await _quick(request, kind)
                if found is not None:
                    return Response(found, media_type="application/json")
                await run_in_threadpool(refuse_repeated, await request.body())
            return await whole(request)

        return handle


def _is_json(content: str) -> bool:
    """Whether the framework reads a body of this type as JSON."""
    return content == "application/json" or (content.startswith("application/") and content.endswith("+json"))


def _not_in_query(name: str, kind: Kind) -> str:
    """What to say of a parameter in the address of a request in JSON."""
    if name in kind.in_query:
        return f"query: {name} belongs into the body of a request in JSON"
    return f"query: there is no parameter {name[:40]}; a request in JSON says {', '.join(kind.in_query)} in its body"


async def _quick(request: Request, kind: Kind) -> bytes | None:
    """Answer to a plain request; None for any other."""
    body, name = await request.body(), request.path_params["name"]
    predictors: PredictorCache = request.app.state.backend.predictors
    if len(body) > IN_PLACE_BYTES:
        return await run_in_threadpool(_answered, predictors, name, body, kind)
    asked = read(body, kind)
    if asked is None:
        return None
    served = predictors.at_hand(name, asked.request.alias)
    if served is None or served.version.spec.lift is not None or len(asked.samples) > IN_PLACE:
        return await run_in_threadpool(_found, predictors, name, asked, kind)
    return _written(served, name, asked, kind)


def _answered(predictors: PredictorCache, name: str, body: bytes, kind: Kind) -> bytes | None:
    asked = read(body, kind)
    return None if asked is None else _found(predictors, name, asked, kind)


def _found(predictors: PredictorCache, name: str, asked: Asked, kind: Kind) -> bytes | None:
    return _written(kind.served(predictors, name, asked.request.alias), name, asked, kind)


def _written(served: Served, name: str, asked: Asked, kind: Kind) -> bytes | None:
    try:
        return kind.whole(kind.checked(served, name), name, asked.request, asked.samples)
    except InvalidInputError:
        return None


def read(body: bytes, kind: Kind) -> Asked | None:
    """Request in a body that is plain: an object with either ``sample`` or ``samples``; None for any other."""
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if type(given) is not dict:
        return None
    beside = given.get("units")
    members = len(given) + (len(beside) if type(beside) is dict else 0)
    one, many = given.pop("sample", None), given.pop("samples", None)
    if (one is None) == (many is None):
        return None
    samples = [one] if many is None else many
    if type(samples) is not list or not 0 < len(samples) <= MOST_SAMPLES:
        return None
    if set(map(type, samples)) != {dict} or not all(samples):
        return None
    if may_repeat(body, members + sum(map(len, samples))) and repeated_key(body) is not None:
        return None
    if not given:
        return Asked(kind.plain, samples)
    try:
        return Asked(kind.asked(given), samples)
    except ValidationError:
        return None
