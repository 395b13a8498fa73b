"""One reader of the store's events for all who follow them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from api.backend.wiring import Backend
from services.contracts.errors import BallastError, UnavailableError
from services.contracts.history.events import Event

LOG = logging.getLogger("ballast.api")
LOOK_SECONDS: Final = 0.5  # between two looks for what other processes committed
WAITING: Final = 1000
"""Events that may wait for one follower; who is slower is let go, and asks again from where it was."""
MOST_FOLLOWERS: Final = 200  # of this process: each holds a connection and a queue


@dataclass(frozen=True)
class Told:
    """An event as it is told: with real names, and as viewers may see it (None: not at all)."""

    event: Event
    for_viewers: Event | None


@dataclass(eq=False)
class Follower:
    """Who follows; ``lost`` is set when it was too slow."""

    queue: asyncio.Queue[Told | None] = field(default_factory=lambda: asyncio.Queue(WAITING + 1))
    lost: bool = False


class Feed:
    """Looks for new events twice a second while somebody follows, once for all of them, and hands them out."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._followers: set[Follower] = set()
        self._last = 0

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not self._followers:
                continue
            try:
                told = await asyncio.to_thread(self.read, self._last)
            except BallastError as error:
                LOG.warning("events cannot be read: %s", error)
                continue
            for each in told:
                self._last = each.event.number
                for follower in self._followers:
                    _hand(follower, each)

    def read(self, number: int) -> list[Told]:
        """Events after a number, at most a thousand."""
        events = self._backend.store.events.after(number)
        known = [site.site_id for site in self._backend.store.sites.list_sites()] if events else []
        return [Told(event, self._public(event, known)) for event in events]

    async def follow(self) -> tuple[Follower, int]:
        """Hand out what is committed from now on, until :meth:`let_go`; with the number of this moment's newest event.

        ``UnavailableError`` where too many follow already.
        """
        newest = (await asyncio.to_thread(self._backend.store.events.span))[1]
        if len(self._followers) >= MOST_FOLLOWERS:  # after the wait: between this and the next lines nobody comes
            raise UnavailableError(f"{MOST_FOLLOWERS} follow the events already; try again later")
        if not self._followers:
            self._last = newest
        follower = Follower()
        self._followers.add(follower)
        return follower, newest

    def let_go(self, follower: Follower) -> None:
        """Hand nothing more out to a follower."""
        self._followers.discard(follower)

    def _public(self, event: Event, known: list[str]) -> Event | None:
        """Event with pseudonyms of the sites; events that are of no model are not for viewers."""
        return None if event.plan is None else self._backend.pseudonyms.applied(event.plan, event, known)


def _hand(follower: Follower, told: Told) -> None:
    if follower.lost:
        return
    if follower.queue.qsize() >= WAITING:
        follower.lost = True
        follower.queue.put_nowait(None)
    else:
        follower.queue.put_nowait(told)
