"""Runs of plans with "auto" over plants whose classes are drawn, tuned and not trained."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType, FaultClass
from services.contracts.plans.plan import Plan
from services.contracts.wire.messages import Task
from tests.services.coordinator.fake_ports import RIG, FakeWorks

GRADES = AssetType(
    name="rig", features=RIG.features,
    fault_classes=tuple(FaultClass(name=name, severity=k) for k, name in enumerate(("ok", "worn", "broken"))),
)


def with_faults(works: FakeWorks, share: float, count: int = 40) -> None:
    """Plants of which so many of ``count`` rows are of the second class."""
    for plant in works.plants.values():
        plant.count = count
        plant.draw_rows()
        plant.classes = (np.arange(plant.count) < share * plant.count).astype(int)


def tune_tasks(works: FakeWorks, run: Run) -> list[Task]:
    asked = works.plants["plant-1"].asked
    return [task for task in asked if task.run_id == run.run_id and task.kind == "tune" and task.tuning is not None]


def tuned(works: FakeWorks, run: Run) -> Run:
    async def whole() -> Run:
        coordinator = works.coordinator()
        return await coordinator.tune(await coordinator.join(run))

    return asyncio.run(whole())


def plan(**changes: Any) -> Plan:
    return Plan.model_validate({"name": "p", "asset_type": "rig", "tuning": "auto"} | changes)
