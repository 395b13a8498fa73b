"""Builds the services that the flows use, from the settings."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from flows.live_keys import LiveKeys
from services.contracts.errors import InvalidInputError, UnavailableError
from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.coordinator.asking.nats_transport import NatsTransport
from services.coordinator.asking.ports import SiteTransport
from services.coordinator.training import Coordinator
from services.process.settings import Settings
from services.registry.mlflow_registry import ModelRegistry
from services.round_store.store import RoundStore

LOG = logging.getLogger("ballast.flows")
LINK_SECONDS = 1.0  # between two tries to reach a NATS server
BUSY_SECONDS = 600.0
"""How long a flow waits for a locked SQLite: a backup may hold it for minutes, and nothing is lost by waiting."""


@dataclass(frozen=True)
class FlowContext:
    """Everything that a flow works with. Open it with :func:`open_context`."""

    settings: Settings
    store: RoundStore

    @cached_property
    def registry(self) -> ModelRegistry:
        """The registry."""
        return ModelRegistry(self.settings.tracking_uri, self.settings.artifact_root)

    def asset_type(self, name: str) -> AssetType:
        """Newest version of an asset type."""
        return self.store.asset_types.get(name).asset_type

    def contract_of(self, run: Run) -> AssetType:
        """Asset type that a run is of: the newest one before it begins, and from then on that with which it began.

        One that began in a release that did not note it is of the newest.
        """
        name = run.plan.asset_type
        if run.start is None:
            return self.asset_type(name)
        return self.store.asset_types.of_contract(name, run.start.contract).asset_type

    def site_keys(self, plan: Plan) -> dict[str, str]:
        """Public keys of the active sites that a plan may ask, by site id.

        ``InvalidInputError`` where the plan names a site that is not active.
        """
        keys = self.active_keys(plan)
        unknown = sorted(set(plan.sites) - set(keys))
        if unknown:
            raise InvalidInputError(
                f"plan {plan.name} names sites that are not enrolled and active: {', '.join(unknown)}",
                code="unknown_site",
            )
        return keys

    def _sites_of(self, run: Run) -> list[str]:
        """Sites that a run may ask: one that has begun goes on where one of its own is suspended or removed since.

        By single answers it asks that one again once it is active, in whichever process; on sums it goes on without.
        """
        if run.status == "pending":
            return list(self.site_keys(run.plan))
        own = [] if run.plan.reveal == "sums" else [site.site_id for site in run.sites]
        return sorted({*self.active_keys(run.plan), *own})

    def active_keys(self, plan: Plan | None = None) -> dict[str, str]:
        """Public keys that hold now of the active sites, by site id: of all, or of those that a plan may ask."""
        now = datetime.now(UTC)
        return {
            site.site_id: site.keys_at(now) for site in self.store.sites.list_sites(status="active")
            if plan is None or (site.site_id in plan.sites if plan.sites else plan.asset_type in site.asset_types)
        }

    @asynccontextmanager
    async def plant_link(
        self, patience_seconds: float = 0.0, still_wanted: Callable[[], None] = lambda: None
    ) -> AsyncIterator[NatsTransport]:
        """Open the connection to the plants; where no server is there, try again for ``patience_seconds``.

        ``still_wanted`` is called before each further try, and ends the waiting with what it raises.
        """
        transport = NatsTransport(self.settings.nats_servers, self.settings.nats_seed, self.settings.nats_authority)
        deadline = time.monotonic() + patience_seconds
        while True:
            try:
                await transport.connect()
                break
            except UnavailableError as error:
                if time.monotonic() >= deadline:
                    raise
                LOG.warning("%s; trying again for %.0f s", error, deadline - time.monotonic())
                await asyncio.sleep(LINK_SECONDS)
                still_wanted()
        try:
            yield transport
        finally:
            await transport.close()

    def coordinator(self, run: Run, transport: SiteTransport) -> Coordinator:
        """Return the coordinator of a run."""
        left = None if run.leaving is None else run.leaving.site_id
        sites = [site for site in self._sites_of(run) if site != left]
        keys = LiveKeys(sites, self.active_keys)
        return Coordinator(self.store.runs, transport, keys, self.contract_of(run))


@contextmanager
def open_context(settings: Settings | None = None) -> Iterator[FlowContext]:
    """Open the round store, whose schema is checked; closed at the end."""
    settings = settings or Settings.load()
    store = RoundStore.open(settings.database, busy_seconds=BUSY_SECONDS)
    try:
        yield FlowContext(settings, store)
    finally:
        store.close()
