"""Who is there: hears the sites say hello, calls the roll, and notices a second agent under one site's key."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from services.contracts.errors import BallastError
from services.contracts.plain_words import plain
from services.contracts.wire.codec import FrameError, unpack
from services.contracts.wire.messages import Hello
from services.contracts.wire.roll import ROLL, TWINS
from services.coordinator.asking.nats_transport import NatsTransport

LOG = logging.getLogger("ballast.coordinator")
MAX_HELLO_BYTES = 4096  # a hello has some 200
LONGEST_VERSION = 40  # characters; a plant says it, so it is cut
MOST_HELLOS, HELLO_WINDOW = 30, 10.0
"""Of one site in so many seconds: an agent says one a second at most, and two agents under one key are to be found."""
TELL_SECONDS = 60.0  # of one plant: at most one line a minute, however often it knocks
ANSWER_SECONDS = 3.0  # how long agents have to say hello again when the roll is called
KeyOf = Callable[[str], str | None]
Seen = Callable[[Hello], Awaitable[None]]
Counted = Callable[[str, int], None]


async def hear_hellos(transport: NatsTransport, key_of: KeyOf, seen: Seen) -> None:
    """Begin to listen on ``hello.*``, for as long as the connection lives; a hello counts when its site signed it.

    ``key_of`` gives the public key of an active site (None for a stranger); ``seen`` takes the hello. Each costs a look
    into the store and a line of the log, so of a site that says more than :data:`MOST_HELLOS` the rest is not heard:
    the others' would wait behind it.
    """
    lately: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=MOST_HELLOS))
    told: dict[str, float] = {}

    def is_too_much(site_id: str) -> bool:
        now, before = time.monotonic(), lately[site_id]
        if len(before) < MOST_HELLOS or now - before[0] >= HELLO_WINDOW:
            before.append(now)
            return False
        if now - told.get(site_id, float("-inf")) >= TELL_SECONDS:
            told[site_id] = now
            LOG.warning("site %s says hello all the time; most of it is not heard", site_id, extra={"site_id": site_id})
        return True

    async def hear(message: Any) -> None:
        site_id = message.subject.removeprefix("hello.")
        if is_too_much(site_id):
            return
        try:
            frame = unpack(message.data, MAX_HELLO_BYTES)
            hello = frame.message()
        except FrameError as error:
            LOG.warning("site %s said something that is not a hello: %s", site_id, error, extra={"site_id": site_id})
            return
        key = key_of(site_id)
        if not isinstance(hello, Hello) or hello.site_id != site_id or key is None:
            LOG.warning("a hello on the subject of site %s does not come from an active site of that name", site_id)
        elif not frame.is_signed_by(key):
            LOG.warning("the hello of site %s is not signed by its enrolled key", site_id)
        else:
            await seen(hello.model_copy(update={"version": plain(hello.version, LONGEST_VERSION)}))

    await transport.subscribe("hello.*", hear)


class Roll:
    """Counts the agents behind each site. Every start of an agent is an instance of its own, and its hello says which.

    ``counted`` takes a site and how many instances said hello after its roll was called, where one did; it is called in
    a thread, for it may wait for a database.
    """

    def __init__(self, transport: NatsTransport, counted: Counted) -> None:
        self._transport = transport
        self._counted = counted
        self._heard: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._alone: dict[str, str] = {}  # the one instance that answered the last roll
        self._calls: dict[str, asyncio.Task[None]] = {}

    def hear(self, hello: Hello) -> None:
        """Note a hello; of an instance that is not known to be alone it calls the roll."""
        self._heard[hello.site_id][hello.instance] = time.monotonic()
        if self._alone.get(hello.site_id) != hello.instance:
            self.call(hello.site_id)

    def is_alone(self, site_id: str) -> bool:
        """Whether one agent answered when the roll of the site was called last."""
        return site_id in self._alone

    def call(self, site_id: str) -> None:
        """Ask all agents of a site to say hello, and count them; once at a time."""
        if site_id not in self._calls:
            self._calls[site_id] = asyncio.create_task(self._count(site_id))
            self._calls[site_id].add_done_callback(lambda _: self._calls.pop(site_id, None))

    async def _count(self, site_id: str) -> None:
        called = time.monotonic()
        await self._transport.say(site_id, ROLL)
        await asyncio.sleep(ANSWER_SECONDS)
        there = [instance for instance, at in self._heard[site_id].items() if at >= called]
        self._heard[site_id] = {instance: self._heard[site_id][instance] for instance in there}
        self._alone.pop(site_id, None)
        if len(there) == 1:
            self._alone[site_id] = there[0]
        elif there:
            await self._transport.say(site_id, TWINS)
        if there:
            try:
                await asyncio.to_thread(self._counted, site_id, len(there))
            except BallastError as error:  # whoever is not known to be alone is counted again at the next look
                LOG.warning("how many agents site %s has could not be noted: %s", site_id, error)


async def connected_sites(transport: NatsTransport, sites: Iterable[str]) -> list[str]:
    """Return which of the sites have an agent that hears its tasks; the server says so, no agent has to answer."""
    wanted = list(sites)
    there = await asyncio.gather(*(transport.is_heard(site) for site in wanted))
    return [site for site, heard in zip(wanted, there, strict=True) if heard]
