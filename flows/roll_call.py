"""Keeps what the store knows of who is there: when a site was last connected, and whether two agents are one site."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from flows.wiring import FlowContext
from services.contracts.errors import BallastError, NotFoundError
from services.contracts.wire.messages import Hello
from services.contracts.wire.roll import LOOK_SECONDS
from services.coordinator.asking.nats_transport import NatsTransport
from services.coordinator.asking.presence import Roll, connected_sites, hear_hellos

LOG = logging.getLogger("ballast.flows")
SEVERAL = "two agents or more answer under its key"


class RollCall:
    """Looks every ten seconds which sites are connected, and counts the agents of each that says hello anew."""

    def __init__(self, context: FlowContext, transport: NatsTransport) -> None:
        self._context = context
        self._transport = transport
        self._roll = Roll(transport, self.counted)

    async def listen(self) -> None:
        """Begin to hear hellos."""
        await hear_hellos(self._transport, self._key_of, self._seen)

    async def watch(self) -> None:
        """Look again and again, for ever."""
        while True:
            try:
                await self.look()
            except BallastError as error:
                LOG.warning("who is there is not known: %s", error)
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Note which sites are connected; count the agents of those that are not known to have one alone."""
        sites = {site.site_id: site for site in self._context.store.sites.list_sites(status="active")}
        there = await connected_sites(self._transport, sites)
        await asyncio.to_thread(self._context.store.sites.connected, there)
        for site_id in there:
            if sites[site_id].notice or not self._roll.is_alone(site_id):
                self._roll.call(site_id)

    def counted(self, site_id: str, agents: int) -> None:
        """Note a second agent, with an audit entry, or that there is one alone again.

        How many they are is not said: whoever holds the key could write an entry for each number.
        """
        notice = "" if agents == 1 else SEVERAL
        with self._context.store.atomic() as unit:
            if not unit.sites.set_notice(site_id, notice):
                return
            unit.audit.append(
                actor="flows", role=None, action="site.second_agent" if notice else "site.one_agent",
                target=f"site:{site_id}", reason=notice or "one agent answers under its key again",
            )
        LOG.log(logging.WARNING if notice else logging.INFO, "site %s: %s", site_id, notice or "one agent again")

    def _key_of(self, site_id: str) -> str | None:
        try:
            site = self._context.store.sites.get(site_id)
        except NotFoundError:
            return None
        return site.keys_at(datetime.now(UTC)) if site.status == "active" else None

    async def _seen(self, hello: Hello) -> None:
        await asyncio.to_thread(self._context.store.sites.seen, hello.site_id, hello.version)
        self._roll.hear(hello)
        LOG.info("site %s is there (agent %s)", hello.site_id, hello.version)
