"""What the flows process starts again, how often, and when it begins anew by another key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import StateType

from flows import runner
from flows.labels import run_tag
from flows.runner import MOST_ATTEMPTS, Watcher, key_changed
from services.contracts.access.service_key import ServiceKey
from services.contracts.history.records import PlanRecord
from services.contracts.history.run import Run
from services.contracts.keys.signing import new_seed_file
from services.contracts.plans.plan import Plan
from services.identity.service_keys import WEBHOOKS, OtherKeyError, ServiceKeys, fingerprint

NOW = datetime(2031, 1, 5, tzinfo=UTC)


def a_run(rounds: int, number: int = 1) -> Run:
    plan = Plan.model_validate({"name": "weekly", "asset_type": "pump"})
    return Run(
        run_id=f"{number:032x}", plan=plan, status="running", created_at=NOW, updated_at=NOW, rounds=rounds
    )


class Prefect:
    """Takes every flow run, whose process ends before it does anything."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.waiting: list[Any] = []

    async def create_flow_run_from_deployment(self, *_: object, parameters: dict[str, str], **__: object) -> Any:
        self.begun.append(parameters["run_id"])
        return SimpleNamespace(id=uuid4())

    async def read_flow_run(self, _: object) -> Any:
        return SimpleNamespace(state=SimpleNamespace(is_final=lambda: True))

    async def read_flow_runs(self, **_: object) -> list[Any]:
        return self.waiting


@dataclass
class Ends:
    """A store whose plans are all archived, and a registry: how each was told that a run has ended."""

    in_store: list[tuple[str, ...]] = field(default_factory=list)
    in_mlflow: list[tuple[str, str]] = field(default_factory=list)

    @property
    def context(self) -> Any:
        return SimpleNamespace(
            store=SimpleNamespace(
                runs=SimpleNamespace(finish_run=lambda *said: self.in_store.append(said)),
                plans=SimpleNamespace(get=lambda _: SimpleNamespace(archived=True)),
            ),
            registry=SimpleNamespace(end_run=lambda run, status: self.in_mlflow.append((run.run_id, status))),
        )


async def test_a_run_whose_process_ends_again_and_again_at_one_round_fails_and_says_so() -> None:
    """One that came a round further meanwhile has all its attempts again, and another run has its own."""
    ended, prefect, nobody, record = Ends(), Prefect(), object(), object()
    watcher = Watcher(
        ended.context, nobody, prefect, {"weekly": uuid4()}, {"weekly": record},  # type: ignore[arg-type, dict-item]  # stand-ins
    )
    for rounds in (0, 7):
        for _ in range(MOST_ATTEMPTS):
            await watcher._start(a_run(rounds))
    await watcher._start(a_run(0, number=2))
    assert prefect.begun == [a_run(0).run_id] * 2 * MOST_ATTEMPTS + [a_run(0, number=2).run_id] and not ended.in_store
    await watcher._start(a_run(7))
    assert len(prefect.begun) == 2 * MOST_ATTEMPTS + 1
    assert ended.in_store == [(a_run(7).run_id, "failed", f"its process ended {MOST_ATTEMPTS} times after round 7")]
    assert ended.in_mlflow == [(a_run(7).run_id, "failed")], "there it would run for ever"


async def test_a_plan_is_deployed_with_its_dates_in_its_own_zone() -> None:
    made: list[dict[str, Any]] = []

    async def add(flow: Any, **given: Any) -> UUID:
        made.append(given)
        return uuid4()

    prefects, nobody = SimpleNamespace(aadd_flow=add), object()
    watcher = Watcher(Ends().context, prefects, nobody)  # type: ignore[arg-type]  # stand-ins
    told = {"name": "weekly", "asset_type": "pump", "cron": "0 3 * * 1", "timezone": "Asia/Tokyo"}
    for paused in (False, True):
        plan = Plan.model_validate(told)
        await watcher._deploy(PlanRecord(plan=plan, paused=paused, created_at=NOW, updated_at=NOW))
        schedule = made[-1]["schedule"]
        assert (schedule.cron, schedule.timezone, made[-1]["paused"]) == ("0 3 * * 1", "Asia/Tokyo", paused)
        assert made[-1]["name"] == "weekly" and made[-1]["parameters"] == {"plan": "weekly"}
        assert "plan:weekly" in made[-1]["tags"]
    bare = Plan.model_validate({"name": "weekly", "asset_type": "pump"})
    await watcher._deploy(PlanRecord(plan=bare, created_at=NOW, updated_at=NOW))
    assert made[-1]["schedule"] is None


async def test_a_flow_run_bears_the_tag_by_which_those_of_its_run_are_found() -> None:
    tags: list[list[str]] = []

    class Noting(Prefect):
        async def create_flow_run_from_deployment(self, *given: object, **more: Any) -> Any:
            tags.append(more["tags"])
            return await super().create_flow_run_from_deployment(*given, **more)

    nobody, record = object(), object()
    watcher = Watcher(
        Ends().context, nobody, Noting(), {"weekly": uuid4()}, {"weekly": record},  # type: ignore[arg-type, dict-item]  # stand-ins
    )
    await watcher._start(a_run(0))
    assert run_tag(a_run(0)) in tags[0] and len(tags) == 1


async def test_the_flow_run_of_a_run_that_began_is_over_and_that_of_one_that_waits_is_not() -> None:
    """It may be about to begin it."""
    crashed: list[object] = []

    class Noting(Prefect):
        async def read_flow_run(self, _: object) -> Any:
            return SimpleNamespace(state=SimpleNamespace(is_final=lambda: False))

        async def set_flow_run_state(self, flow_run_id: object, *_: object, **__: object) -> None:
            crashed.append(flow_run_id)

    nobody, record = object(), object()
    watcher = Watcher(
        Ends().context, nobody, Noting(), {"weekly": uuid4()}, {"weekly": record},  # type: ignore[arg-type, dict-item]  # stand-ins
    )
    ids = {status: uuid4() for status in ("pending", "running")}
    for number, (status, flow_run_id) in enumerate(ids.items()):
        told = {"status": status, "flow_run_id": str(flow_run_id)}
        await watcher._start(a_run(0, number).model_copy(update=told))
    assert crashed == [ids["running"]]


async def test_a_run_of_an_archived_plan_is_cancelled_in_the_store_and_in_mlflow() -> None:
    ended, nobody = Ends(), object()
    await Watcher(ended.context, nobody, nobody)._start(a_run(3))  # type: ignore[arg-type]  # stand-ins
    assert ended.in_store == [(a_run(3).run_id, "cancelled", "its plan is archived")]
    assert ended.in_mlflow == [(a_run(3).run_id, "cancelled")]


async def test_with_a_key_of_another_service_the_process_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it signs or names by that key nobody else could check or find."""
    known = ServiceKey(
        name=WEBHOOKS, fingerprint=fingerprint(WEBHOOKS, bytes(range(32))), home="oem:/there/webhooks.key",
        created_at=NOW,
    )
    keys = SimpleNamespace(find=lambda name: known if name == WEBHOOKS else None)

    @contextmanager
    def opened() -> Iterator[Any]:
        yield SimpleNamespace(
            settings=SimpleNamespace(home=tmp_path, flows_lock=tmp_path / "flows.lock"),
            store=SimpleNamespace(service_keys=keys), plant_link=lambda: pytest.fail("it begins"),
        )

    path = ServiceKeys(tmp_path, cast(Any, keys)).path(WEBHOOKS)
    path.parent.mkdir(exist_ok=True)
    path.write_text("ab" * 32)
    monkeypatch.setattr(runner, "open_context", opened)
    with pytest.raises(OtherKeyError, match="is not the key that this service uses"):
        await runner.serve()


async def test_the_process_begins_anew_by_another_key_when_no_run_is_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "KEY_SECONDS", 0.01)
    seed, unfinished = tmp_path / "coordinator.nk", ["a run"]
    new_seed_file(seed)
    context: Any = SimpleNamespace(
        settings=SimpleNamespace(nats_seed=seed),
        store=SimpleNamespace(runs=SimpleNamespace(unfinished_runs=lambda: list(unfinished))),
    )
    waiting = asyncio.create_task(key_changed(context))
    await asyncio.sleep(0.05)
    seed.unlink()
    new_seed_file(seed)
    await asyncio.sleep(0.1)
    assert not waiting.done(), "a run would lose its connection in the middle of a round"
    unfinished.clear()
    await asyncio.wait_for(waiting, 10.0)


LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


@pytest.mark.parametrize(("ours", "due", "type_", "begun"), [
    (True, LONG_AGO, StateType.SCHEDULED, 0),
    (False, LONG_AGO, StateType.SCHEDULED, 1),
    (True, LONG_AGO + timedelta(days=365), StateType.SCHEDULED, 1),
    (True, None, StateType.SCHEDULED, 1),
    (True, LONG_AGO, StateType.RUNNING, 1),
])
async def test_a_flow_run_that_waits_for_its_turn_is_waited_for_however_long(
    ours: bool, due: datetime | None, type_: StateType, begun: int
) -> None:
    """One of a deployment that is gone, or that somebody put off to next year, is not; nor one that died."""
    prefect, deployment, nobody = Prefect(), uuid4(), object()
    prefect.waiting = [SimpleNamespace(
        id=uuid4(), deployment_id=deployment if ours else uuid4(), next_scheduled_start_time=None,
        expected_start_time=due, state=SimpleNamespace(type=type_, timestamp=LONG_AGO, is_final=lambda: True),
    )]
    watcher = Watcher(nobody, nobody, prefect)  # type: ignore[arg-type]  # stand-ins
    watcher.deployments["weekly"], watcher._known["weekly"] = deployment, object()  # type: ignore[assignment]
    await watcher._start(a_run(0))
    assert len(prefect.begun) == begun


async def test_dates_of_long_ago_are_skipped_once_the_deployments_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the runner starts: it would begin a process for each."""
    nobody: Any = object()
    watcher, weekly, archived = Watcher(nobody, nobody, nobody), uuid4(), uuid4()
    skipped: list[Any] = []

    async def found() -> None:
        watcher.deployments["archived"] = archived

    async def reconciled() -> None:
        assert watcher.deployments.pop("archived") == archived
        watcher.deployments["weekly"] = weekly

    async def skip(client: object, deployments: Any, before: datetime) -> int:
        skipped.append((client, [*deployments], abs(datetime.now(UTC) - before).total_seconds() < 60.0))
        return 0

    monkeypatch.setattr(watcher, "find_archived", found)
    monkeypatch.setattr(watcher, "reconcile", reconciled)
    monkeypatch.setattr(runner, "skip_stale", skip)
    await watcher.begin()
    assert skipped == [(nobody, [weekly], True)]
