"""The OEM's side of a simulated works: the real watcher and the real flow, in processes that die and are held up.

Prefect is a table of flow runs. Everything else is the product's: orders, lease, drive, endings, publication.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prefect.exceptions import ObjectNotFound
from sqlalchemy import Engine

from flows.alias_watch import watch_aliases
from flows.retrain import retrain
from flows.runner import Watcher
from flows.wiring import FlowContext
from services.contracts.history.run import Run
from services.coordinator.asking.ports import SiteTransport
from services.coordinator.training import Coordinator
from services.process.tracing import TracingSettings
from services.round_store.store import RoundStore
from tests.simulation.disk import SimulatedDatabase, StoreFaults
from tests.simulation.processes import CURRENT, Process
from tests.simulation.registry import Registry
from tests.simulation.store import Remembered
from tests.simulation.world import World

LEASE_SECONDS = 8.0


class SimulatedContext(FlowContext):
    """The services of a flow, with the registry of the simulated works."""

    def __init__(self, settings: Any, store: RoundStore, registry: Registry) -> None:
        super().__init__(settings, store)
        self.__dict__["registry"] = self._simulated = registry

    def coordinator(self, run: Run, transport: SiteTransport) -> Coordinator:
        """As of the product; a run whose training and evaluation are committed asks no plant any more."""
        process, world = CURRENT.get(), self._simulated.world
        overtaken = world.clock_jumped or process is not None and process.was_held  # another one may drive it by now
        if not overtaken and self._is_evaluated(run):
            world.breach(f"publication: run {run.run_id[:8]} asks its plants once more, and it is evaluated")
        return super().coordinator(run, transport)

    def _is_evaluated(self, run: Run) -> bool:
        """Whether the store has the draft of its version, or the registry the version."""
        with self.store.engine.connect() as connection:
            found = connection.exec_driver_sql("SELECT 1 FROM run_drafts WHERE run_id = ?", (run.run_id,))
            draft = found.scalar() is not None
        return draft or any(each.run_id == run.run_id for each in self._simulated.versions.get(run.plan.name, ()))


@dataclass
class Office:
    """Starts and ends the processes of the OEM's side."""

    world: World
    engine: Engine
    registry: Registry
    store_faults: StoreFaults
    seed_file: Path
    crash_within: int = 0
    committed: Any = None
    flow_runs: dict[uuid.UUID, Any] = field(default_factory=dict)
    flows: list[Process] = field(default_factory=list)
    _count: int = 0
    _left: Process | None = None

    def __post_init__(self) -> None:
        self._draw, self._remembered = self.world.stream("office"), Remembered(self.engine)
        self.settings = SimpleNamespace(
            tracing=TracingSettings(), api=SimpleNamespace(url="https://ballast"),
            lease_seconds=LEASE_SECONDS, nats_servers=("sim",), nats_seed=self.seed_file, nats_authority=None,
            flows_lock=self.seed_file.with_name("flows.lock"),
        )

    def store(self, process: Process, faults: bool = True) -> RoundStore:
        """The store as one process sees it."""
        database = SimulatedDatabase(
            self.engine, self.world, process, self.store_faults if faults else None, self._committed
        )
        return self._remembered.store(database, process)

    def close(self) -> None:
        """Let go of the store."""
        self._remembered.close()

    def _committed(self, process: Process) -> None:
        self._remembered.forget()
        self.committed(process)

    def context(self, process: Process, faults: bool = True) -> SimulatedContext:
        """What a process of the flows works with."""
        return SimulatedContext(self.settings, self.store(process, faults), self.registry)

    @contextlib.contextmanager
    def open_context(self, settings: Any = None) -> Iterator[SimulatedContext]:
        """Context of the present process."""
        process = CURRENT.get()
        assert process is not None
        yield self.context(process)

    def start_watcher(self) -> None:
        """Start the process that starts the runs, and starts again whenever it ends."""
        process = Process("watcher")
        context = self.context(process)
        runner = _Runner()
        watcher = Watcher(context, runner, _Client(self, runner))  # type: ignore[arg-type]
        self.watcher = process
        for work in (watcher.watch(), watch_aliases(context)):
            process.start(work).add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """As in the product: whichever work ends first ends the process, and it is started again.

        So it is where the store took it along, which the watcher writes to seldom.
        """
        if task in self.watcher.tasks and self._left is not self.watcher:
            if self.watcher.alive and not task.cancelled() and task.exception() is not None:
                self.world.breach(f"the watcher fell over {task.exception()!r}")
            self._leave()

    def _leave(self) -> None:
        self._left = self.watcher
        self.watcher.kill()
        self.world.loop.call_later(2.0, self.start_watcher)

    def restart_watcher(self) -> None:
        """Kill it, and start it again a moment later."""
        self.world.fault("crash", "watcher")
        self._leave()

    def start_flow(self, plan: str, run_id: str) -> uuid.UUID:
        """Start a process with a flow run."""
        self._count += 1
        flow_run_id = uuid.UUID(int=self._count)
        process = Process(f"flow-{self._count}", flow_run_id=flow_run_id, on_crash=self._crashed)
        if self.crash_within and self.world.loop.time() < self.store_faults.until:
            process.crash_at = self._draw.randint(1, self.crash_within)
        token = CURRENT.set(None)
        try:
            self.flow_runs[flow_run_id] = process.start(retrain.fn(plan, run_id))
        finally:
            CURRENT.reset(token)
        self.flows.append(process)
        return flow_run_id

    def driving(self) -> list[Process]:
        """Flows that are at work."""
        return [
            each for each in self.flows
            if each.alive and not self.flow_runs[each.flow_run_id].done()
        ]

    def _crashed(self, process: Process) -> None:
        self.world.fault("crash", f"{process.name} at await {process.awaits}")


class _Runner:
    """Prefect's runner: it names a deployment, and keeps it as it was made."""

    def __init__(self) -> None:
        self.deployments: dict[uuid.UUID, Any] = {}

    async def aadd_flow(self, flow: Any, *, name: str, schedule: Any, paused: bool, **options: Any) -> uuid.UUID:
        number = uuid.uuid5(uuid.NAMESPACE_DNS, name)
        dates = [] if schedule is None else [SimpleNamespace(active=True, schedule=schedule)]
        self.deployments[number] = SimpleNamespace(id=number, name=name, paused=paused, schedules=dates)
        return number


class _Client:
    """Prefect's client: it starts flow runs and knows how they are."""

    def __init__(self, office: Office, runner: _Runner) -> None:
        self._office, self._runner = office, runner

    async def read_deployments(self, *, flow_filter: Any, deployment_filter: Any, limit: int) -> list[Any]:
        """Those with one of the ids, or of the names: all are of one flow."""
        ids, names = (each and each.any_ for each in (deployment_filter.id, deployment_filter.name))
        known = self._runner.deployments.values()
        return [each for each in known if each.id in (ids or ()) or each.name in (names or ())]

    async def create_flow_run_from_deployment(
        self, deployment: Any, *, parameters: Any, name: str, tags: Any = (), idempotency_key: str = ""
    ) -> Any:
        return SimpleNamespace(id=self._office.start_flow(parameters["plan"], parameters["run_id"]))

    async def read_flow_run(self, flow_run_id: uuid.UUID) -> Any:
        if flow_run_id not in self._office.flow_runs:
            raise ObjectNotFound(Exception("no such flow run"))
        done = self._office.flow_runs[flow_run_id].done()
        return SimpleNamespace(state=SimpleNamespace(is_final=lambda: done))

    async def read_flow_runs(self, *, flow_run_filter: Any, sort: Any) -> list[Any]:
        """Those that wait to begin: none, for here a flow is at work as soon as it is started."""
        return []

    async def set_flow_run_state(self, flow_run_id: uuid.UUID, state: Any, force: bool = False) -> None:
        """Prefect's pages show nothing here."""
