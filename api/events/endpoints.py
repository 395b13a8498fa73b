"""Events as a stream (Server-Sent Events, WHATWG HTML 9.2)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BeforeValidator, NonNegativeInt
from starlette.types import Receive, Scope, Send

from api.events.feed import Feed, Follower, Told
from api.web.auth import Reader
from api.web.authenticator import Caller, TokenAuthenticator
from api.web.limits import UNBUFFERED
from services.contracts.documents import to_plain
from services.contracts.errors import BallastError
from services.contracts.history.events import LOST, EventKind

router = APIRouter(prefix="/v1/events", tags=["events"])
ROUTERS = (router,)
QUIET_SECONDS: Final = 15.0
"""After so long without an event a comment is sent; the token is looked at again so often, events or not."""


class EventStream(StreamingResponse):
    """A stream of events; ``ended`` is called when it is over, also where it never began."""

    media_type = "text/event-stream"

    def __init__(self, texts: AsyncIterator[str], ended: Callable[[], None], status_code: int = 200) -> None:
        super().__init__(texts, status_code, UNBUFFERED)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the texts."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def _absent_if_empty(header: object) -> object:
    """None for a header without a number: what a client sends that has had no event yet, or a proxy for it."""
    return None if isinstance(header, str) and not header.strip() else header


@router.get("", response_class=EventStream)
async def stream_events(
    request: Request,
    caller: Reader,
    kind: Annotated[list[EventKind] | None, Query(description="only of these kinds; repeatable")] = None,
    plan: Annotated[str | None, Query(description="only of this plan and its model")] = None,
    last_event_id: Annotated[
        NonNegativeInt | None, BeforeValidator(_absent_if_empty), Header(description="go on after this event")
    ] = None,
    after: Annotated[int | None, Query(ge=0, description="the same, for who cannot send the header")] = None,
) -> EventStream:
    """What happens, as it happens: each event with its number as `id`, its kind as `event`, and JSON as `data`.

    A client that was cut goes on where it was by the header `Last-Event-ID`, which browsers send by themselves. Events
    are kept for 30 days; where some are missing in between, the first one is `events.lost`. Viewers see pseudonyms of
    the sites, and no events that are of no model.
    """
    feed: Feed = request.app.state.feed
    number = after if last_event_id is None else last_event_id
    wanted = frozenset(kind or ())

    def fits(told: Told) -> bool:
        shown = told.event if caller.sees_site_names else told.for_viewers
        return shown is not None and (not wanted or shown.kind in wanted) and plan in (None, shown.plan)

    follower, newest = await feed.follow()  # before anything is sent: who cannot follow is told why
    texts = _texts(request, feed, caller, number, fits, follower, newest)
    return EventStream(texts, lambda: feed.let_go(follower))


async def _texts(
    request: Request, feed: Feed, caller: Caller, number: int | None, fits: Callable[[Told], bool],
    follower: Follower, newest: int,
) -> AsyncIterator[str]:
    """Text of the stream: first what the store has after ``number``, then what is committed."""
    real, looked = caller.sees_site_names, time.monotonic()
    last = newest if number is None else number
    yield _place(": following", last)
    if number is not None:
        oldest = (await asyncio.to_thread(request.app.state.backend.store.events.span))[0]
        if number + 1 < oldest or number > newest:
            last = newest if number > newest else oldest - 1
            yield f"id: {last}\nevent: {LOST}\ndata: {{}}\n\n"
    # Also without a number: the feed may have been further already than the newest event of a moment ago.
    while told := await asyncio.to_thread(feed.read, last):
        for each in told:
            last = each.event.number
            if fits(each):
                yield _text(each, real)
    while True:
        if time.monotonic() - looked >= QUIET_SECONDS:
            if not await _still_holds(request, caller):
                return
            looked = time.monotonic()
        try:
            next_one = await asyncio.wait_for(follower.queue.get(), QUIET_SECONDS)
        except TimeoutError:
            yield _place(": still here", last)
            continue
        if next_one is None:
            return
        if next_one.event.number > last:
            last = next_one.event.number
            if fits(next_one):
                yield _text(next_one, real)


async def _still_holds(request: Request, caller: Caller) -> bool:
    """Whether the token, or the session, of a stream has neither ended nor been revoked since."""
    authenticator: TokenAuthenticator = request.app.state.authenticator
    try:
        if caller.session:
            await asyncio.to_thread(authenticator.of_session, caller.session)
        else:
            await asyncio.to_thread(authenticator.authenticate, request.headers.get("authorization"))
    except BallastError:
        return False
    return True


def _place(comment: str, last: int) -> str:
    """A comment and how far the stream is, without an event: who is cut before his first one goes on from there."""
    return f"{comment}\nid: {last}\n\n"


def _text(told: Told, real: bool) -> str:
    shown = told.event if real or told.for_viewers is None else told.for_viewers
    plain = {name: value for name, value in to_plain(shown).items() if value not in (None, "")}
    data = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    return f"id: {shown.number}\nevent: {shown.kind}\ndata: {data}\n\n"
