"""Predictions of samples without end: a sample a line in, an answer a line out (NDJSON).

One version answers the whole stream. A line that does not fit is told in its place, with its number, and the others go
on. The last line says ``end``: a stream without it broke off. Memory is bounded by a chunk, whatever is sent; a client
must read while it sends (:mod:`api.web.slow_readers`).
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson
from fastapi import Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from api.models.answers import Kind
from api.web.authenticator import TokenAuthenticator
from api.web.limits import LINES, UNBUFFERED
from api.web.parameters import check_query
from api.web.repeated_keys import may_repeat, repeated_key
from services.contracts.errors import BallastError, InvalidInputError
from services.contracts.evaluation.diagnosis import DiagnoseRequest
from services.contracts.reading import explain
from services.contracts.repeated_keys import said_twice
from services.predictor.predictor import coverage_of

MEDIA_TYPE: Final = LINES
LONGEST_LINE: Final = 64 * 1024
"""Bytes of one line: a sample of several hundred features and their names."""
CHUNK: Final = 1_000
"""Lines that are answered at once."""
_NUMBERS: Final = frozenset({"coverage", "confidence"})
Numbered = tuple[int, bytes | None]
"""A line by its number from 1; None: it was too long to be kept."""


async def answer(request: Request, kind: Kind) -> Response:
    """Stream of answers to the request's lines.

    ``alias``, ``coverage`` and ``confidence`` stand in the query; ``RequestValidationError`` or ``InvalidInputError``
    where they do not fit, ``ConflictError`` where the version has no answers of that coverage.
    """
    check_query(request.query_params, dict.fromkeys(kind.in_query, False))
    try:
        asked = kind.asked(_beside(request.query_params))
    except ValidationError as error:
        raise InvalidInputError(f"query: {explain(error)}") from None
    name = request.path_params["name"]
    served = await run_in_threadpool(kind.served, request.app.state.backend.predictors, name, asked.alias)
    coverage_of(served.version, asked.coverage)
    return _Lines(_answers(request, kind, served, asked))


def _beside(query: Mapping[str, str]) -> dict[str, object]:
    """What the query says, with numbers where the contract has some: a query has nothing but texts."""
    found: dict[str, object] = dict(query)
    for name in _NUMBERS & found.keys():
        with suppress(ValueError):
            found[name] = float(query[name])
    return found


class _Lines(Response):
    """Response that is sent while the request is still being read; nobody but its body reads the request."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        super().__init__(media_type=MEDIA_TYPE, headers=UNBUFFERED)
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send chunk by chunk."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async for chunk in self._chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except ClientDisconnect:
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _answers(request: Request, kind: Kind, served: Any, asked: DiagnoseRequest) -> AsyncIterator[bytes]:
    version = served.version
    told: dict[str, object] = {"model": version.name, "model_version": version.version, "run_id": version.run_id}
    count = {"lines": 0, "answered": 0, "refused": 0}
    try:
        async for chunk in _chunks(request):
            await _still_known(request)
            texts, refused = await run_in_threadpool(by_line, kind, served, asked, chunk)
            count["lines"] += len(chunk)
            count["answered"] += len(texts) - refused
            count["refused"] += refused
            yield b"".join(text + b"\n" for text in texts)
    except BallastError as error:
        yield orjson.dumps({"end": False, **told, **count, "error": str(error)}) + b"\n"
        return
    yield orjson.dumps({"end": True, **told, **count}) + b"\n"


async def _still_known(request: Request) -> None:
    """Raise ``UnauthenticatedError`` where the caller's token has ended meanwhile."""
    authenticator: TokenAuthenticator = request.app.state.authenticator
    header = request.headers.get("authorization")
    if authenticator.known(header) is None:
        await run_in_threadpool(authenticator.authenticate, header)


async def _chunks(request: Request) -> AsyncIterator[list[Numbered]]:
    """Lines as they come, a thousand at most together; empty ones are left out, and keep their number."""
    rest, number, too_long = b"", 0, False

    def kept(ended: list[bytes]) -> Iterator[Numbered]:
        nonlocal number, too_long
        for line in ended:
            number += 1
            if number == 1:  # as before a body in JSON, a file's byte order mark says nothing
                line = line.removeprefix(BOM_UTF8)
            if too_long or len(line) > LONGEST_LINE:
                yield number, None
            elif line.strip():
                yield number, line
            too_long = False

    async for part in request.stream():
        *ended, rest = (rest + part).split(b"\n")
        found = list(kept(ended))
        if len(rest) > LONGEST_LINE:
            rest, too_long = b"", True
        for start in range(0, len(found), CHUNK):
            yield found[start : start + CHUNK]
    last = list(kept([rest])) if rest or too_long else []
    if last:
        yield last


def by_line(
    kind: Kind, served: Any, asked: DiagnoseRequest, chunk: list[Numbered]
) -> tuple[list[bytes], int]:
    """Answer to each line, in their order, and how many of them are refusals."""
    samples: dict[int, Mapping[str, float]] = {}
    errors: dict[int, str] = {}
    for number, line in chunk:
        sample = None if line is None else _parsed(line)
        if sample is not None and line is not None:
            if may_repeat(line, len(sample)) and (key := repeated_key(line)) is not None:
                errors[number] = f"line {number}: {said_twice(key)}"
            else:
                samples[number] = sample
        else:
            errors[number] = (
                f"line {number} has more than {LONGEST_LINE} bytes" if line is None
                else f"line {number} must be a JSON object with a number for each feature"
            )
    rows = _rows(kind, served, asked, samples, errors)
    texts = [
        b'{"line":%d,' % number + (rows[number][1:] if number in rows else orjson.dumps({"error": errors[number]})[1:])
        for number, _ in chunk
    ]
    return texts, len(errors)


def _rows(
    kind: Kind, served: Any, asked: DiagnoseRequest, samples: Mapping[int, Mapping[str, float]], errors: dict[int, str]
) -> dict[int, bytes]:
    """Answers by line number; where some do not fit, those are put among the errors."""
    if not samples:
        return {}
    try:
        return dict(zip(samples, kind.by_row(served, asked, list(samples.values())), strict=True))
    except InvalidInputError:
        fitting = {}
        for number, sample in samples.items():
            try:
                served.read([sample])
                fitting[number] = sample
            except InvalidInputError as error:
                errors[number] = str(error).replace("sample 0", f"line {number}", 1)
        if len(fitting) == len(samples):  # it was not the samples
            raise
        return _rows(kind, served, asked, fitting, errors)


def _parsed(line: bytes) -> Mapping[str, float] | None:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return found if type(found) is dict and found else None
