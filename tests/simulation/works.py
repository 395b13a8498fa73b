"""A simulated works put together, and one seed run from its beginning to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from services.contracts.errors import BallastError
from services.contracts.plans.overrides import tuning_alone
from services.contracts.wire.messages import Task
from services.registry.labels import CHAMPION, PREVIOUS
from tests.simulation import sound_numbers
from tests.simulation.disk import LedgerFaults, LedgerOs, StoreFaults
from tests.simulation.invariants import Invariants
from tests.simulation.network import Bus
from tests.simulation.office import Office
from tests.simulation.plants import GRADED, RIG, Plant, new_key
from tests.simulation.processes import CURRENT, Process
from tests.simulation.registry import Registry
from tests.simulation.scenario import MOST_VIRTUAL_SECONDS, Action, Scenario, draw_scenario
from tests.simulation.store import founded, temporary
from tests.simulation.world import World

SETTLED_SECONDS = 12.0
"""After the last run has ended: the watch over aliases looks every ten."""


@dataclass(frozen=True)
class Outcome:
    """What came of a seed."""

    seed: int
    broken: tuple[str, ...]
    faults: Mapping[str, int]
    steps: int
    digest: str
    ends: tuple[str, ...]
    rounds: int
    trace: tuple[str, ...] = ()


@dataclass
class Works:
    """The parts of one simulated works."""

    scenario: Scenario
    world: World
    folder: Path
    plants: dict[str, Plant] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scenario, world = self.scenario, self.world
        self.ledger_os = LedgerOs(world)
        self.asset_type = GRADED if scenario.mode in ("all classes", "coupling") else RIG
        self.rows_of: dict[str, dict[str, int]] = {}
        self.bus = Bus(world, scenario.weather)
        self.bus.slow = scenario.slow
        self.engine, self.store_file = founded()
        self.registry = Registry(world, scenario.registry_away, scenario.calm_at)
        faults = StoreFaults(world.stream("store"), **scenario.store_faults, until=scenario.calm_at)
        oem_key = new_key(self.folder / "coordinator.nk", world.stream("the OEM's key"))
        for site in scenario.sites:
            lie = _LIES[scenario.lie] if site == scenario.liar else None
            self.plants[site] = Plant(
                site, self.folder / site, world, self.ledger_os, oem_key, lie, asset_type=self.asset_type
            )
            self.ledger_os.faults[site] = LedgerFaults(
                world.stream(f"ledger of {site}"), **scenario.ledger_faults, until=scenario.calm_at
            )
        self.office = Office(
            world, self.engine, self.registry, faults, self.folder / "coordinator.nk", scenario.crash_within
        )
        self.operator = Process("operator")
        self.invariants = Invariants(self)
        self.office.committed = self.invariants.committed
        self.store = self.office.store(self.operator, faults=False)

    async def live(self, also: Callable[[Works], Awaitable[None]] | None = None) -> None:
        """From the first enrolment until ``also`` is done and every run has ended."""
        CURRENT.set(self.operator)
        self.store.asset_types.add(self.asset_type)
        for site, plant in self.plants.items():
            self.store.sites.enrol(site, plant.key, [self.asset_type.name])
        self.store.plans.create(self.scenario.plan)
        for plant in self.plants.values():
            plant.start()
        self.office.start_watcher()
        for action in self.scenario.actions:
            self.world.loop.call_at(action.at, self.do, action)
        last = max(each.at for each in self.scenario.actions)
        if also is not None:
            await also(self)
        limit = self.world.loop.time() + MOST_VIRTUAL_SECONDS
        while self.world.loop.time() < limit:
            await asyncio.sleep(1.0)
            if self.world.loop.time() > max(last, self.scenario.calm_at) and not self.invariants.unfinished():
                break
        await asyncio.sleep(SETTLED_SECONDS)
        self.invariants.at_the_end()
        for process in (*self.office.flows, self.office.watcher, *(each.process for each in self.plants.values())):
            if process is not None:
                process.kill()
        for plant in self.plants.values():
            plant.stopped = True
        await asyncio.sleep(0.5)

    def order(self, what: str, whom: str) -> None:
        """Do at once what an operator does."""
        self.do(Action(self.world.loop.time(), what, whom))

    def do(self, action: Action) -> None:
        """Do one thing that the scenario says."""
        try:
            self._do(action, self.plants.get(action.whom))
        except BallastError as error:
            self.world.note(f"{action.what} {action.whom} refused: {error.code}")

    def _do(self, action: Action, plant: Plant | None) -> None:
        what, until = action.what, self.world.loop.time() + action.number
        if plant is not None and what in ("kill plant", "power cut"):
            self.world.fault("power cut" if what == "power cut" else "crash", plant.site_id)
            plant.kill(power=what == "power cut")
        elif plant is not None and what == "hold plant" and plant.process is not None:
            self.world.fault("hold", plant.site_id)
            plant.process.held_until = until
        elif what in ("kill flow", "hold flow"):
            for process in self.office.driving()[:1]:
                self.world.fault(what.split()[0].replace("kill", "crash"), process.name)
                if what == "hold flow":
                    process.held_until, process.was_held = until, True
                else:
                    process.kill()
        elif what == "kill watcher":
            self.office.restart_watcher()
        elif what in ("cut site", "cut coordinator"):
            self.bus.cut("coordinator" if what == "cut coordinator" else action.whom, action.number)
        elif what == "jump":
            self.world.fault("clock jump", f"{action.number:g}")
            self.world.clock_offset += action.number
            self.world.clock_jumped = True
            self.invariants.put_back(max(-action.number, 0.0))
        else:
            self._order(action, plant)

    def _order(self, action: Action, plant: Plant | None) -> None:
        """What an operator does, through the store."""
        self.world.note(f"operator: {action.what} {action.whom}")
        unfinished = self.store.runs.unfinished_runs()
        if action.what == "week" and not unfinished:  # rows that change in a run's middle are for the next one
            draw = self.world.stream(f"week at {action.at}")
            for each in self.plants.values():
                if draw.random() < 0.4:
                    each.measure()
        if action.what in ("trigger", "week", "tune"):
            with self.store.atomic() as unit:
                plan = unit.plans.get(self.scenario.plan.name).plan
                run = unit.runs.create_run(tuning_alone(plan) if action.what == "tune" else plan)
                unit.audit.append(
                    actor="user:op", role=None, action="plan.tune" if action.what == "tune" else "plan.trigger",
                    target="plan:nightly", after={"run_id": run.run_id},
                )
            self.rows_of[run.run_id] = {site: len(each.revisions) - 1 for site, each in self.plants.items()}
        elif action.what == "cancel" and unfinished:
            self.store.runs.request_cancel(unfinished[0].run_id)
        elif action.what == "promote":
            self._promote()
        elif plant is None:
            return
        elif action.what == "rotate":
            former = plant.key
            key, grace = plant.new_key(), 0.5 + action.number / 3
            self.store.sites.rotate_key(plant.site_id, key, self.world.now() + timedelta(seconds=grace))
            self.invariants.revoked(plant.site_id, former, grace)
            self.world.loop.call_later(0.9 * action.number, plant.kill)
        elif action.what == "suspend":
            self.store.sites.suspend(plant.site_id)
            self.invariants.revoked(plant.site_id, "", 0.0)
        elif action.what == "reactivate":
            self.store.sites.reactivate(plant.site_id)
            self.invariants.restored(plant.site_id)

    def _promote(self) -> None:
        """Promotion by hand, as the API does it: in one transaction with its audit event."""
        name = self.scenario.plan.name
        versions = self.store.model_versions.list_versions(name, limit=10)
        if not versions:
            return
        version = versions[-1].version
        with self.store.atomic() as unit:
            unit.model_versions.record_alias(name, CHAMPION, version, "user:op", "by hand")
            unit.audit.append(actor="user:op", role=None, action="model.promote", target=name, reason="by hand")
            self.registry.promote(name, version)
            before = self.registry.aliases(name).get(PREVIOUS)
            unit.model_versions.follow_alias(name, PREVIOUS, before, "user:op", "by hand")


def simulate(
    seed: int, *, trace: bool = False, scenario: Scenario | None = None,
    also: Callable[[Works], Awaitable[None]] | None = None,
) -> Outcome:
    """Run one seed; another ``scenario`` than it draws, and something that is done ``also``, where given."""
    scenario, world = scenario or draw_scenario(seed), World(seed, keep_trace=trace)
    with _folder() as folder, _quiet(), sound_numbers.held_to(world):
        works: Works | None = None
        try:
            works = Works(scenario, world, folder)
            product = world.installed(works.ledger_os, works.bus.client, works.office.open_context)
            with product, works.invariants.sums.watched(), works.invariants.steps.watched():
                world.loop.on_step = works.invariants.after_step
                world.loop.set_exception_handler(lambda loop, context: _unhandled(world, context))
                asyncio.set_event_loop(world.loop)
                world.loop.run_until_complete(works.live(also))
            return Outcome(
                seed, tuple(world.broken), dict(world.faults), world.loop.steps, world.digest,
                tuple(works.invariants.ends), works.invariants.rounds, tuple(world.trace),
            )
        finally:
            _closed(world)
            if works is not None:
                works.invariants.close()
                works.office.close()
                works.engine.dispose()


def _closed(world: World) -> None:
    """End what is left of the tasks, and the loop."""
    world.loop.on_step = None
    world.loop.set_exception_handler(lambda loop, context: None)
    for task in asyncio.all_tasks(world.loop):
        task.cancel()
    world.loop.call_soon(world.loop.stop)
    world.loop.call_later(1.0, world.loop.stop)
    with contextlib.suppress(RuntimeError):
        world.loop.run_forever()
    for task in asyncio.all_tasks(world.loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    asyncio.set_event_loop(None)
    world.loop.close()


def _unhandled(world: World, context: Mapping[str, Any]) -> None:
    error = context.get("exception")
    if error is None:
        return  # a task of a killed process that nobody holds any more
    world.breach(f"an error that nothing caught: {error!r} ({context.get('message')})")


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with temporary("simulated-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _scaled(task: Task, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: 3.0 * array for name, array in arrays.items()}


_LIES = {
    "scaled": _scaled,
    "mirrored": lambda task, arrays: {name: -array for name, array in arrays.items()},
    "not finite": lambda task, arrays: {name: np.full_like(array, np.nan) for name, array in arrays.items()},
    "huge": lambda task, arrays: {name: 1e200 * np.ones_like(array) for name, array in arrays.items()},
    "shifted": lambda task, arrays: {name: array + task.round for name, array in arrays.items()},
}
