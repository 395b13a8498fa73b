"""The flows process: keeps a Prefect deployment for each plan, starts pending runs and picks up orphaned ones.

The round store is the queue. A run that an operator triggered is pending there; a run whose process was killed is
running there under a lease that has expired. Both become a Prefect flow run of the plan's deployment. What a schedule
starts is Prefect's; the flow asks the store whether the date is one of the plan's, and a date that was lost is pending.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

from httpx import HTTPError
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.types.entrypoint import EntrypointType

from flows.alias_watch import watch_aliases
from flows.artifacts import forget_tables
from flows.deployments import changed, named
from flows.labels import plan_tags, run_name, run_tag, run_tags
from flows.lost_flow_runs import BEGUN, is_over, mark_begun, mark_crashed, mark_unfinished
from flows.missed_dates import PATIENCE, MissedDates
from flows.mlflow_ends import watch_ends
from flows.prefect_runner import make_runner
from flows.publish import withdraw
from flows.retention import watch_retention
from flows.retrain import retrain
from flows.roll_call import RollCall
from flows.stale_dates import skip_stale
from flows.unlearning import forget_those_due, is_archived
from flows.wiring import FlowContext, open_context
from services.contracts.errors import BallastError
from services.contracts.history.records import PlanRecord
from services.contracts.history.run import Run
from services.contracts.keys.signing import public_key
from services.identity.service_keys import OtherKeyError, ServiceKeys
from services.process.log_lines import set_up_logs
from services.process.private_files import keep_private
from services.process.process_lock import held, show_life
from services.process.settings import Settings

LOG = logging.getLogger("ballast.flows")
WATCH_SECONDS = 1.0  # how long a triggered run waits at most
DEPLOYMENTS_EVERY = 15  # looks between two at whether Prefect has the deployments as they were made
MOST_ATTEMPTS = 5  # a run whose process died so often will not do better
BEGIN_SECONDS = 60.0  # from a flow run's beginning, by whichever process, to its lease: packages are loaded meanwhile
KEY_SECONDS = 2.0  # between two looks whether the coordinator has another key


@dataclass
class Watcher:
    """Brings Prefect into line with the round store, again and again."""

    context: FlowContext
    runner: Runner
    client: PrefectClient
    deployments: dict[str, UUID] = field(default_factory=dict)
    _known: dict[str, PlanRecord] = field(default_factory=dict)
    _attempts: Counter[tuple[str, int]] = field(default_factory=Counter)
    _started: dict[str, UUID] = field(default_factory=dict)
    _buried: set[UUID] = field(default_factory=set)
    _since: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def begin(self) -> None:
        """What comes before the first date is started: deployments of the plans, and no dates of long ago."""
        await self.find_archived()
        await self.reconcile()
        await skip_stale(self.client, self.deployments.values(), datetime.now(UTC))

    async def watch(self) -> None:
        """Look once a second, for ever; at the deployments more seldom."""
        missed = MissedDates(self.context.store)
        for look in count():
            show_life(self.context.settings.flows_lock)
            try:
                if look % DEPLOYMENTS_EVERY == 0:  # first: without a run's deployment the rest ends at that run
                    await self.put_right()
                await self.reconcile()
                for name in await missed.order(self._known.values()):
                    # No run of the plan was unfinished, so what Prefect has of it from before drives nothing.
                    await mark_unfinished(self.client, self.deployments[name], datetime.now(UTC) - PATIENCE)
            except (BallastError, HTTPError, OSError) as error:
                LOG.warning("cannot bring the round store and Prefect into line: %s", error)
            await asyncio.sleep(WATCH_SECONDS)

    async def reconcile(self) -> None:
        """Take over new and changed plans, take away those that are gone or archived; start what waits."""
        records = {record.plan.name: record for record in self.context.store.plans.list_plans()}
        for name in [name for name in self.deployments if name not in records]:
            await self._withdraw(name)
        for name, record in records.items():
            if self._known.get(name) != record:
                self.deployments[name] = await self._deploy(record)
                self._known[name] = record
        lease_seconds = self.context.settings.lease_seconds
        for run in self.context.store.runs.stale_runs(grace_seconds=0.0, lease_seconds=lease_seconds):
            await self._start(run)
        await asyncio.to_thread(forget_those_due, self.context, forget_tables)

    async def _deploy(self, record: PlanRecord) -> UUID:
        plan = record.plan
        LOG.info("plan %s: schedule %s%s", plan.name, plan.cron or "none", ", paused" if record.paused else "")
        schedule = Cron(plan.cron, timezone=plan.timezone) if plan.cron else None
        # The runner runs the flow that it is given here. Of a bare deployment it would run what Prefect says now.
        return await self.runner.aadd_flow(
            retrain, name=plan.name, schedule=schedule, paused=record.paused, parameters={"plan": plan.name},
            description=f"Federated retraining of {plan.asset_type} with {plan.method}", tags=plan_tags(plan),
            entrypoint_type=EntrypointType.MODULE_PATH,
        )

    async def put_right(self) -> None:
        """Deploy anew what somebody paused, deleted or gave other dates in Prefect: its runner would start no date."""
        for name in await changed(self.client, self.deployments, self._known):
            LOG.warning("plan %s: somebody changed its deployment in Prefect; it is as the plan says again", name)
            self.deployments[name] = await self._deploy(self._known[name])

    async def find_archived(self) -> None:
        """Note the deployments that an earlier process left of plans that are archived, to take them away."""
        archived = [each.plan.name for each in self.context.store.plans.list_plans(archived=True) if each.archived]
        self.deployments |= await named(self.client, retrain.name, archived)

    async def _withdraw(self, name: str) -> None:
        """Take a plan's deployment away, and with it the dates of its schedule that Prefect has noted."""
        with suppress(ObjectNotFound):
            await self.client.delete_deployment(self.deployments[name])
        LOG.info("plan %s: gone or archived; nothing starts it", name)
        del self.deployments[name]
        self._known.pop(name, None)

    async def _start(self, run: Run) -> None:
        """Start a flow run for a run that nobody drives, unless one is on its way already."""
        if run.plan.name not in self._known:
            await asyncio.to_thread(self._end_where_archived, run)
            return  # a plan made since the last look has its deployment at the next one
        if await self._on_its_way(run):
            return
        at = (run.run_id, run.rounds)  # a run that has come further since has all its attempts again
        if self._attempts[at] >= MOST_ATTEMPTS:
            said = f"its process ended {MOST_ATTEMPTS} times after round {run.rounds}"
            await asyncio.to_thread(self._end, run, "failed", said)
            return
        if run.flow_run_id and run.status == "running":
            await mark_crashed(self.client, UUID(run.flow_run_id))
        theirs = await self._flow_runs_of(run)
        if run.run_id not in self._started:
            # Those that an earlier process was killed while starting; one that began since may be another process's.
            self._buried |= await mark_begun(self.client, theirs, self._since)
        if any(self._is_begun_elsewhere(run, each) for each in theirs):
            return
        started = await self.client.create_flow_run_from_deployment(
            self.deployments[run.plan.name], parameters={"plan": run.plan.name, "run_id": run.run_id},
            name=run_name(run, self._starts_of(run) + 1), tags=run_tags(run),
            # Of several processes that look at the same moment all get the one flow run that Prefect makes of this key.
            idempotency_key=f"{run.run_id} after {theirs[0].id if theirs else 'none'}",
        )
        self._attempts[at] += 1  # what Prefect refuses is no process that ended
        self._started[run.run_id] = started.id
        LOG.info("run %s: %s", run.run_id, "started" if run.status == "pending" else "picked up again")

    def _end_where_archived(self, run: Run) -> None:
        """End a run of an archived plan, which nothing starts: it could not be cancelled, nor the plan be restored."""
        if is_archived(self.context, run.plan.name):
            self._end(run, "cancelled", "its plan is archived")
            LOG.info("run %s: cancelled, for its plan is archived", run.run_id)

    def _end(self, run: Run, status: str, reason: str) -> None:
        """End a run that nobody drives, in the store and in MLflow, where it would run for ever."""
        self.context.store.runs.finish_run(run.run_id, status, reason)
        withdraw(self.context, run, status)

    def _starts_of(self, run: Run) -> int:
        return sum(count for (run_id, _), count in self._attempts.items() if run_id == run.run_id)

    async def _on_its_way(self, run: Run) -> bool:
        flow_run_id = self._started.get(run.run_id)
        if flow_run_id is None or str(flow_run_id) == run.flow_run_id:
            return False
        return not await is_over(self.client, flow_run_id)

    async def _flow_runs_of(self, run: Run) -> list[FlowRun]:
        """Flow runs of a run, the newest first: its earlier ones, and those that another flows process started."""
        tagged = FlowRunFilter(tags=FlowRunFilterTags(all_=[run_tag(run)]))
        return await self.client.read_flow_runs(flow_run_filter=tagged, sort=FlowRunSort.EXPECTED_START_TIME_DESC)

    def _is_begun_elsewhere(self, run: Run, each: FlowRun) -> bool:
        """Whether a flow run was begun a moment ago, by another, and drives the run soon; not for long: it may die.

        One that waits for its turn is no process that could die: whatever flows process comes next starts it.
        """
        known = {run.flow_run_id, *map(str, self._buried), *map(str, self._started.values())}
        if (state := each.state) is None or str(each.id) in known:
            return False
        if state.type is StateType.SCHEDULED and each.deployment_id == self.deployments[run.plan.name]:
            due = each.next_scheduled_start_time or each.expected_start_time
            return due is not None and due < datetime.now(UTC) + timedelta(seconds=BEGIN_SECONDS)
        return state.type in BEGUN and abs((datetime.now(UTC) - state.timestamp).total_seconds()) < BEGIN_SECONDS


async def key_changed(context: FlowContext) -> None:
    """Return when the coordinator has another key and no run is on its way: the process starts again with that one."""
    seed = context.settings.nats_seed
    connected = public_key(seed)
    while public_key(seed) == connected or context.store.runs.unfinished_runs():
        await asyncio.sleep(KEY_SECONDS)
    LOG.info("the coordinator has another key; starting again with it")


async def serve() -> None:
    """Run the flows process until it is told to stop."""
    with open_context() as context, held(context.settings.flows_lock):
        ServiceKeys(context.settings.home, context.store.service_keys).check_held()
        async with context.plant_link() as transport, get_client() as client:
            roll_call = RollCall(context, transport)
            await roll_call.listen()
            runner = make_runner(context.settings.prefect)
            watcher = Watcher(context, runner, client)
            await watcher.begin()
            # Whichever ends first ends the process: a runner without its watcher would start nothing, in silence.
            work = (watcher.watch(), runner.start(), runner.told_to_end(), watch_aliases(context), watch_ends(context),
                    key_changed(context), roll_call.watch(), watch_retention(context, client))
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
    set_up_logs(Settings.load().logging)
    try:
        asyncio.run(serve())
    except OtherKeyError as error:
        sys.exit(f"ballast: {error}")
