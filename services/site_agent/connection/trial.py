"""A key is tried at the OEM's server before it is used: one connection that hears no task and says nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from services.contracts.errors import UnavailableError
from services.site_agent.connection.link import PlantLink
from services.site_agent.connection.link_address import Address

TRIAL_SECONDS = 15.0
"""How long a server may take to let a key in: some tries, and the grace of a key that was entered a moment ago."""

FLUSHES = 2
"""The library's first ping may overtake the subscription; a second one, sent after the answer to it, does not."""


async def try_key(address: Address, seconds: float = TRIAL_SECONDS) -> None:
    """Connect with the key of ``address`` as its site, and leave. No hello is said, so nothing is in the ledger.

    Raises
    ------
    KeyRefusedError
        The server does not know the key, or knows it as another site's.
    LinkError
        The connection cannot be used as it is set up.
    UnavailableError
        No server answered in ``seconds``.
    """
    stop = asyncio.Event()
    try:
        async with asyncio.timeout(seconds):
            await _Trial(address, stop).run(stop)
    except TimeoutError:
        raise UnavailableError(
            f"no NATS server answered at {', '.join(address.servers)} within {seconds:g} s"
        ) from None


class _Trial(PlantLink):
    """The agent's own link, which ends where the agent's would say hello."""

    def __init__(self, address: Address, stop: asyncio.Event) -> None:
        super().__init__(address, lambda frame, headers: b"", lambda: b"")
        self._stop = stop
        self._outage_said = True  # it is said at the end, by what ends it

    async def _greet(self, client: Client) -> None:
        try:
            for _ in range(FLUSHES):
                await client.flush()  # what the server has against the subscription comes before its answer to this
        except (NatsError, ConnectionError, TimeoutError):
            return  # lost again; the next connection tries again
        if self._failure is None or not self._failure.done():
            self._stop.set()

    async def _on_task(self, client: Client, message: Any) -> None:
        """Leave it to the agent, which runs with the present key meanwhile."""
