"""What somebody deletes in Prefect's pages while the flows process is at work: it goes on, and makes it anew."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

from flows import runner
from flows.runner import DEPLOYMENTS_EVERY, MOST_ATTEMPTS, Watcher
from services.contracts.history.records import PlanRecord
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan

NOW = datetime(2031, 1, 5, tzinfo=UTC)
RECORD = PlanRecord(
    plan=Plan.model_validate({"name": "weekly", "asset_type": "pump"}), created_at=NOW, updated_at=NOW
)
PENDING = Run(run_id="a" * 32, plan=RECORD.plan, status="pending", created_at=NOW, updated_at=NOW)


class Prefect:
    """A server with a deployment of each id that was made, and the flow runs that are asked of these."""

    def __init__(self) -> None:
        self.deployments, self.flow_runs, self.names = list[UUID](), dict[UUID, Any](), list[str]()

    async def aadd_flow(self, *_: object, **__: object) -> UUID:
        self.deployments.append(uuid4())
        return self.deployments[-1]

    async def create_flow_run_from_deployment(self, deployment: UUID, *, name: str, **_: object) -> Any:
        if deployment not in self.deployments:
            request = httpx.Request("POST", "http://prefect/api")
            answer = httpx.Response(404, request=request)
            raise PrefectHTTPStatusError("not found", request=request, response=answer)
        self.names.append(name)
        made = SimpleNamespace(id=uuid4(), state=SimpleNamespace(is_final=lambda: False))
        self.flow_runs[made.id] = made
        return made

    async def read_flow_run(self, flow_run_id: UUID) -> Any:
        if flow_run_id not in self.flow_runs:
            raise ObjectNotFound(Exception())
        return self.flow_runs[flow_run_id]

    async def read_flow_runs(self, **_: object) -> list[Any]:
        return []

    async def read_deployments(self, **_: object) -> list[Any]:
        return [SimpleNamespace(id=each, schedules=[], paused=False) for each in self.deployments]


class Store:
    """A plan, and a run of it that nobody drives."""

    def __init__(self) -> None:
        self.ends: list[Any] = []
        self.plans = SimpleNamespace(list_plans=lambda: [RECORD])
        self.runs = SimpleNamespace(stale_runs=lambda **_: [PENDING], finish_run=lambda *said: self.ends.append(said))


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> Watcher:
    settings = SimpleNamespace(lease_seconds=60.0, flows_lock=None)
    context, prefect = SimpleNamespace(store=Store(), settings=settings, registry=None), Prefect()
    monkeypatch.setattr(runner, "forget_those_due", lambda *_: None)
    return Watcher(context, prefect, prefect)  # type: ignore[arg-type]  # stand-ins


async def test_a_flow_run_that_was_deleted_before_it_began_is_made_anew(watcher: Watcher) -> None:
    prefect: Any = watcher.client
    await watcher.reconcile()
    await watcher.reconcile()
    assert len(prefect.flow_runs) == 1, "it is on its way"
    prefect.flow_runs.clear()
    await watcher.reconcile()
    assert len(prefect.flow_runs) == 1
    assert prefect.names == ["weekly-aaaaaaaa-1", "weekly-aaaaaaaa-2"]


async def test_a_run_whose_deployment_was_deleted_waits_for_the_next_one(
    watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process of it has ended: it does not fail, however long that takes, and keeps nobody from deploying anew."""
    prefect: Any = watcher.client
    watcher.deployments["weekly"] = await prefect.aadd_flow()
    watcher._known["weekly"] = RECORD
    looks: list[int] = []

    async def sleep(_: float) -> None:
        looks.append(len(prefect.flow_runs))
        if len(looks) == 1:
            prefect.deployments.clear()
            prefect.flow_runs.clear()
        if len(looks) > 2 * DEPLOYMENTS_EVERY:
            raise TimeoutError

    async def order(_: object) -> list[str]:
        return []

    monkeypatch.setattr(runner, "asyncio", SimpleNamespace(sleep=sleep, to_thread=asyncio.to_thread))
    monkeypatch.setattr(runner, "show_life", lambda _: None)
    monkeypatch.setattr(runner, "MissedDates", lambda _: SimpleNamespace(order=order))
    store: Any = watcher.context.store
    with pytest.raises(TimeoutError):
        await watcher.watch()
    assert DEPLOYMENTS_EVERY > MOST_ATTEMPTS and not store.ends
    assert looks[0] == 1 and set(looks[1:DEPLOYMENTS_EVERY]) == {0} and set(looks[DEPLOYMENTS_EVERY + 1 :]) == {1}
