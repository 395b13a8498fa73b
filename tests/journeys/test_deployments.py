"""Prefect's deployments against the plans, on a real server: a question for many, and each spoilt one is found."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.client.schemas.objects import State
from prefect.client.schemas.schedules import CronSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.states import Pending, Running, Scheduled

from flows import deployments
from flows.deployments import changed, named
from flows.lost_flow_runs import mark_unfinished
from flows.stale_dates import skip_stale
from services.contracts.history.records import PlanRecord
from services.contracts.plans.plan import Plan
from tests.journeys.works import PREFECT_SECRET
from tests.waiting import PATIENCE

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CRON, ZONE = "0 3 1 1 *", "Europe/Vienna"
FLOW = "of-the-deployments"


def record(name: str, cron: str | None = CRON, *, paused: bool = False) -> PlanRecord:
    plan = Plan(name=name, asset_type="rig", cron=cron, timezone=ZONE if cron else "UTC")
    return PlanRecord(plan=plan, paused=paused, created_at=NOW, updated_at=NOW)


async def deploy(client: PrefectClient, flow: str, of: PlanRecord) -> UUID:
    plan = of.plan
    cron = CronSchedule(cron=plan.cron, timezone=plan.timezone) if plan.cron else None
    dates = [] if cron is None else [DeploymentScheduleCreate(schedule=cron)]
    flow_id = await client.create_flow_from_name(flow)
    return await client.create_deployment(flow_id, plan.name, paused=of.paused, schedules=dates)


def counted(client: PrefectClient) -> list[str]:
    """Paths of what the client asks from now on."""
    asked: list[str] = []

    async def note(request: Any) -> None:
        asked.append(request.url.path)

    client._client.event_hooks["request"].append(note)
    return asked


@pytest.mark.parametrize("at_once", [2, 100])
async def test_each_spoilt_deployment_is_found_by_a_question_for_many(
    prefect_url: str, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(deployments, "AT_ONCE", at_once)
    records = {each.plan.name: each for each in (
        record("well"), record("without-dates", None), record("stopped", paused=True),
        record("set-going", paused=True), record("halted"), record("other-date"), record("gone"), record("date-off"),
        record("other-zone"),
    )}
    async with PrefectClient(prefect_url, auth_string=PREFECT_SECRET) as client:
        known = {name: await deploy(client, FLOW, each) for name, each in records.items()}
        assert await changed(client, known, records) == []
        await client.pause_deployment(known["halted"])
        await client.resume_deployment(known["set-going"])
        await client.delete_deployment(known["gone"])
        for name, change in (("other-date", {"schedule": CronSchedule(cron="0 4 1 1 *", timezone=ZONE)}),
                             ("other-zone", {"schedule": CronSchedule(cron=CRON, timezone="UTC")}),
                             ("date-off", {"active": False})):
            [date] = await client.read_deployment_schedules(known[name])
            await client.update_deployment_schedule(known[name], date.id, **change)
        asked = counted(client)
        records["made-since"] = record("made-since")  # it has no deployment yet
        found = await changed(client, known | {"archived": uuid4()}, records)
        assert sorted(found) == ["date-off", "gone", "halted", "other-date", "other-zone", "set-going"]
        assert asked == ["/api/deployments/filter"] * -(-len(known) // at_once)
        for its in known.values():
            if its != known["gone"]:
                await client.delete_deployment(its)


async def test_deployments_are_found_by_name_among_those_of_our_flow_alone(
    prefect_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may have given a deployment of another flow the name of a plan: it is not ours to take away."""
    monkeypatch.setattr(deployments, "AT_ONCE", 2)
    names = ["first", "second", "third"]
    async with PrefectClient(prefect_url, auth_string=PREFECT_SECRET) as client:
        ours = {name: await deploy(client, FLOW, record(name)) for name in names}
        theirs = await deploy(client, "another-flow", record("first"))
        await deploy(client, "another-flow", record("fourth"))
        asked = counted(client)
        assert theirs not in ours.values()
        assert await named(client, FLOW, [*names, "fourth", "never"]) == ours
        assert asked == ["/api/deployments/filter"] * 3
        asked.clear()
        assert await named(client, FLOW, []) == {} and asked == []
        for its in ours.values():
            await client.delete_deployment(its)


async def test_flow_runs_that_were_lost_are_over_and_no_others(prefect_url: str) -> None:
    """Of the plan's own, those that began before the moment; what is only scheduled is started yet."""
    async with PrefectClient(prefect_url, auth_string=PREFECT_SECRET) as client:
        ours, theirs = [await deploy(client, FLOW, record(name)) for name in ("lost", "at-work")]

        async def begun(deployment: UUID, state: State[Any]) -> UUID:
            return (await client.create_flow_run_from_deployment(deployment, state=state)).id

        running, pending, scheduled = [await begun(ours, each) for each in (Running(), Pending(), Scheduled())]
        other = await begun(theirs, Running())

        async def types() -> list[str]:
            found = [(await client.read_flow_run(each)).state for each in (running, pending, scheduled, other)]
            return [each.type.value for each in found if each is not None]

        before = ["RUNNING", "PENDING", "SCHEDULED", "RUNNING"]
        assert await types() == before
        await mark_unfinished(client, ours, datetime.now(UTC) - timedelta(minutes=1))
        assert await types() == before
        await mark_unfinished(client, ours, datetime.now(UTC) + timedelta(minutes=1))
        assert await types() == ["CRASHED", "CRASHED", "SCHEDULED", "RUNNING"]
        for its in (ours, theirs):
            await client.delete_deployment(its)


async def test_of_dates_that_nobody_started_the_latest_alone_is_left(prefect_url: str) -> None:
    """Those that the schedule made, of the deployments that are named; what somebody ordered is not a date."""
    async with PrefectClient(prefect_url, auth_string=PREFECT_SECRET) as client:
        ours, theirs = [await deploy(client, FLOW, record(name, "* * * * *")) for name in ("stale", "others")]
        ordered = (await client.create_flow_run_from_deployment(ours, state=Scheduled())).id

        async def waiting(deployment: UUID) -> list[datetime]:
            of = DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
            found = await client.read_flow_runs(deployment_filter=of, sort=FlowRunSort.EXPECTED_START_TIME_ASC)
            scheduled = [each for each in found if each.auto_scheduled and each.state and each.state.is_scheduled()]
            return [each.expected_start_time for each in scheduled if each.expected_start_time]

        async with asyncio.timeout(PATIENCE):  # Prefect notes them when it comes to it
            while len(await waiting(ours)) < 5 or len(await waiting(theirs)) < 5:
                await asyncio.sleep(0.5)
        dates, kept = await waiting(ours), await waiting(theirs)
        moment = dates[3] + timedelta(seconds=1)
        assert await skip_stale(client, [ours], moment) == 3
        assert await waiting(ours) == dates[3:] and await waiting(theirs) == kept
        assert await skip_stale(client, [ours], moment) == 0
        state = (await client.read_flow_run(ordered)).state
        assert state is not None and state.is_scheduled()
        for its in (ours, theirs):
            await client.delete_deployment(its)
