"""The fake works on virtual time: plants that take their time, and runs that wait for nobody."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from services.contracts.wire.codec import decode
from services.contracts.wire.messages import Task
from services.coordinator.asking.ports import RawAnswer
from tests.services.coordinator.fake_ports import FakePlant, FakeWorks
from tests.simulation.loop import SimulationLoop


class SlowTransport:
    """Plants that take their time, in virtual seconds; ``silent`` says of a task whether nobody answers it."""

    def __init__(self, plants: Mapping[str, FakePlant], seconds: Mapping[str, float]) -> None:
        self.plants, self.seconds, self.silent = plants, seconds, lambda task: False
        self.asked: list[tuple[float, str, int]] = []
        self.deadlines: set[float] = set()
        self.under_way = 0

    async def ask(self, frames: Mapping[str, bytes], deadline_seconds: float) -> dict[str, RawAnswer]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.deadlines.add(deadline_seconds)
        found = {}
        for site, frame in frames.items():
            task = decode(frame, 1 << 20)
            assert isinstance(task, Task)
            self.asked.append((began, site, task.round))
            if self.silent(task):
                found[site] = RawAnswer(site, None, "absent", 0.0)
        slowest = max((self.seconds.get(site, 1.0) for site in frames.keys() - found.keys()), default=0.0)
        self.under_way += 1
        try:
            await asyncio.sleep(min(slowest, deadline_seconds))
        finally:
            self.under_way -= 1
        for site in [each for each in frames if each not in found]:
            found[site] = (
                RawAnswer(site, None, "late", deadline_seconds) if self.seconds.get(site, 1.0) > deadline_seconds
                else self.plants[site].answer(frames[site])
            )
        return found


class PatientWorks(FakeWorks):
    """As the fake works, on virtual time."""

    transport: Any

    def slow(self, **seconds: float) -> SlowTransport:
        found = SlowTransport(self.plants, {name.replace("_", "-"): each for name, each in seconds.items()})
        self.transport = found
        return found

    def waiting(self, waiting: Mapping[str, Any] | None = None, **changes: Any) -> Any:
        return self.run(
            **{"waiting": {**({} if waiting is None else waiting)}, "absence_patience_seconds": 60.0,
               "max_rounds": 400, "gap": 1e-4, **changes}
        )

    def trained(self, run: Any, coordinator: Any = None, judged: Any = None) -> tuple[Any, float]:
        """Train; what came of it, and the virtual seconds that it took."""
        loop = SimulationLoop(random.Random(0))

        async def whole() -> Any:
            driver = coordinator or self.coordinator()
            joined = run if run.status == "running" else await driver.join(run)
            began = loop.time()
            return await driver.train(joined, None, judged), loop.time() - began

        try:
            return loop.run_until_complete(whole())
        finally:
            loop.close()

    def answers(self, site: str) -> list[tuple[int, str, int]]:
        return [
            (record.round, each.status, each.question)
            for record in self.store.records for each in record.answers if each.site_id == site
        ]
