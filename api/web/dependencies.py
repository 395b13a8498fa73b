"""What routers ask for: the backend, the page of a list, and answers that JSON can hold."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import JSONResponse

from api.auth import Caller
from api.use_cases.actor import Actor
from api.wiring import Backend
from services.contracts.documents import to_plain
from services.round_store.queries import MAX_PAGE


class PlainJSON(JSONResponse):
    """JSON in which a number that JSON has no form for is a word: "Infinity", "-Infinity" or "NaN"."""

    def render(self, content: Any) -> bytes:
        """JSON of plain content."""
        return json.dumps(to_plain(content), allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


async def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


Office = Annotated[Backend, Depends(_backend)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="most rows of the answer")]
Offset = Annotated[int, Query(ge=0, le=2**31, description="rows to leave out at the beginning")]


def actor_of(caller: Caller) -> Actor:
    """Caller as the audit trail names it."""
    return Actor(caller.actor, caller.role)
