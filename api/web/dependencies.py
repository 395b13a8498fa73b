"""What endpoints ask for: the backend, the page of a list, a reason, and answers that JSON can hold."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from api.backend.wiring import Backend
from services.contracts.base import Contract
from services.contracts.documents import to_plain
from services.round_store.database.queries import MAX_PAGE


class PlainJSON(JSONResponse):
    """JSON in which a number that JSON has no form for is a word: "Infinity", "-Infinity" or "NaN"."""

    def render(self, content: Any) -> bytes:
        """JSON of plain content."""
        return json.dumps(to_plain(content), allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


class OptionalReason(Contract):
    """Why something is done; may be left out."""

    reason: str = Field(default="", max_length=500)


async def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


async def _reason(body: OptionalReason | None = None) -> str:
    return body.reason if body else ""


BackendDep = Annotated[Backend, Depends(_backend)]
ReasonDep = Annotated[str, Depends(_reason)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="most rows of the answer")]
Offset = Annotated[int, Query(ge=0, le=2**31, description="rows to leave out at the beginning")]

DryRun = Annotated[bool, Query(description="check the change and answer as if it were made; nothing is kept")]
"""The parameter ``dry_run`` of a change (``api.backend.trial``)."""
