"""The flows process: keeps a Prefect deployment for each plan, starts pending runs and picks up orphaned ones.

The round store is the queue. A run that an operator triggered is pending there; a run whose process was killed is
running there under a lease that has expired. Both become a Prefect flow run of the plan's deployment. What a schedule
starts needs no help: Prefect does that, and the flow asks the store whether the date is one of the plan's.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from httpx import HTTPError
from prefect.client.orchestration import PrefectClient, get_client
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.states import Crashed
from prefect.types.entrypoint import EntrypointType

from flows.alias_watch import watch_aliases
from flows.retrain import retrain
from flows.wiring import FlowContext, open_context
from services.contracts.errors import BallastError, NotFoundError
from services.contracts.private_files import keep_private
from services.contracts.records import PlanRecord
from services.contracts.run import Run
from services.contracts.signing import public_key
from services.coordinator.nats_transport import NatsTransport
from services.coordinator.presence import hear_hellos

LOG = logging.getLogger("ballast.flows")
WATCH_SECONDS = 1.0  # how long a triggered run waits at most
MOST_ATTEMPTS = 5  # a run whose process died so often will not do better
KEY_SECONDS = 2.0  # between two looks whether the coordinator has another key


@dataclass
class Watcher:
    """Brings Prefect into line with the round store, again and again."""

    context: FlowContext
    runner: Runner
    client: PrefectClient
    deployments: dict[str, UUID] = field(default_factory=dict)
    _known: dict[str, PlanRecord] = field(default_factory=dict)
    _attempts: Counter[str] = field(default_factory=Counter)
    _started: dict[str, UUID] = field(default_factory=dict)

    async def watch(self) -> None:
        """Look once a second, for ever."""
        while True:
            try:
                await self.reconcile()
            except (BallastError, HTTPError, OSError) as error:
                LOG.warning("cannot bring the round store and Prefect into line: %s", error)
            await asyncio.sleep(WATCH_SECONDS)

    async def reconcile(self) -> None:
        """Take over new and changed plans; start what waits."""
        for record in self.context.store.plans.list_plans():
            if self._known.get(record.plan.name) != record:
                self.deployments[record.plan.name] = await self._deploy(record)
                self._known[record.plan.name] = record
        for run in self.context.store.runs.stale_runs(grace_seconds=0.0):
            await self._start(run)

    async def _deploy(self, record: PlanRecord) -> UUID:
        plan = record.plan
        LOG.info("plan %s: schedule %s%s", plan.name, plan.cron or "none", ", paused" if record.paused else "")
        schedule = Cron(plan.cron, timezone=plan.timezone) if plan.cron else None
        # The runner runs the flow that it is given here. Of a bare deployment it would run what Prefect says now.
        return await self.runner.aadd_flow(
            retrain, name=plan.name, schedule=schedule, paused=record.paused, parameters={"plan": plan.name},
            description=f"Federated retraining of {plan.asset_type} with {plan.method}", tags=["ballast"],
            entrypoint_type=EntrypointType.MODULE_PATH,
        )

    async def _start(self, run: Run) -> None:
        """Start a flow run for a run that nobody drives, unless one is on its way already."""
        if run.plan.name not in self.deployments or await self._on_its_way(run):
            return  # a plan made since the last look has its deployment at the next one
        if self._attempts[run.run_id] >= MOST_ATTEMPTS:
            self.context.store.runs.finish_run(run.run_id, "failed", f"its process ended {MOST_ATTEMPTS} times")
            return
        if run.flow_run_id and run.status == "running":
            await self._mark_crashed(UUID(run.flow_run_id))
        self._attempts[run.run_id] += 1
        started = await self.client.create_flow_run_from_deployment(
            self.deployments[run.plan.name], parameters={"plan": run.plan.name, "run_id": run.run_id},
            name=f"{run.plan.name}-{run.run_id[:8]}-{self._attempts[run.run_id]}",
        )
        self._started[run.run_id] = started.id
        LOG.info("run %s: %s", run.run_id, "started" if run.status == "pending" else "picked up again")

    async def _on_its_way(self, run: Run) -> bool:
        flow_run_id = self._started.get(run.run_id)
        if flow_run_id is None or str(flow_run_id) == run.flow_run_id:
            return False
        state = (await self.client.read_flow_run(flow_run_id)).state
        return state is None or not state.is_final()

    async def _mark_crashed(self, flow_run_id: UUID) -> None:
        """Tell Prefect that the flow run of a killed process is over; it would show it as running for ever."""
        try:
            state = (await self.client.read_flow_run(flow_run_id)).state
            if state is not None and not state.is_final():
                await self.client.set_flow_run_state(
                    flow_run_id, Crashed(message="its process is gone; the run goes on in a new flow run"), force=True
                )
        except ObjectNotFound:
            LOG.info("flow run %s is not known to this Prefect server", flow_run_id)


async def update_presence(context: FlowContext, transport: NatsTransport) -> None:
    """Note in the store which sites say hello."""

    def key_of(site_id: str) -> str | None:
        try:
            site = context.store.sites.get(site_id)
        except NotFoundError:
            return None
        return site.keys_at(datetime.now(UTC)) if site.status == "active" else None

    def seen(site_id: str, version: str) -> None:
        context.store.sites.seen(site_id, version)
        LOG.info("site %s is there (agent %s)", site_id, version)

    await hear_hellos(transport, key_of, seen)


async def key_changed(context: FlowContext) -> None:
    """Return when the coordinator has another key and no run is on its way: the process starts again with that one."""
    seed = context.settings.nats_seed
    connected = public_key(seed)
    while public_key(seed) == connected or context.store.runs.unfinished_runs():
        await asyncio.sleep(KEY_SECONDS)
    LOG.info("the coordinator has another key; starting again with it")


async def serve() -> None:
    """Run the flows process until it is told to stop."""
    with open_context() as context:
        async with context.plant_link() as transport, get_client() as client:
            await update_presence(context, transport)
            runner = Runner(name="ballast", query_seconds=1.0, pause_on_shutdown=False, limit=None)
            watcher = Watcher(context, runner, client)
            await watcher.reconcile()
            # Whichever ends first ends the process: a runner without its watcher would start nothing, in silence.
            work = (watcher.watch(), runner.start(), watch_aliases(context), key_changed(context))
            tasks = [asyncio.create_task(each) for each in work]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    keep_private()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(serve())
