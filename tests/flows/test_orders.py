"""Only the store gives orders: what Prefect says of a plan, a run or a date is held against it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from flows.orders import ordered_run
from services.contracts.errors import ConflictError
from services.contracts.history.records import PlanRecord
from services.contracts.history.run import Run
from services.contracts.plans.overrides import tuning_alone
from services.contracts.plans.plan import Plan
from services.round_store.store import RoundStore
from services.round_store.tables.plans import PlanRow, PlanVersionRow
from services.round_store.tables.runs import RunRow


def plan(store: RoundStore, cron: str | None = "0 3 * * *", *, name: str = "nightly", paused: bool = False) -> Plan:
    return store.plans.create(Plan(name=name, asset_type="rig", cron=cron), paused=paused).plan


async def ask(store: RoundStore, name: str, run_id: str | None = None, *, at: datetime | None = None) -> Run:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    slept: list[float] = []
    run = await ordered_run(store, name, run_id, now=lambda: at or datetime.now(UTC), sleep=sleep)
    assert all(seconds <= 30 for seconds in slept)
    return run


def next_three(after: datetime) -> datetime:
    """The next three o'clock."""
    day = after.replace(hour=3, minute=0, second=0, microsecond=0)
    return day if day >= after else day + timedelta(days=1)


def changed_at(store: RoundStore, record: PlanRecord, at: datetime) -> None:
    """Let a plan have been given its present version at another time."""
    name = record.plan.name
    with store.database.write() as session:
        session.execute(update(PlanRow).where(PlanRow.name == name).values(updated_at=at))
        of_it = update(PlanVersionRow).where(PlanVersionRow.name == name, PlanVersionRow.version == record.version)
        session.execute(of_it.values(created_at=at))


def end(store: RoundStore, run: Run) -> None:
    store.runs.finish_run(run.run_id, "failed", "of the test")


async def test_a_run_that_an_operator_asked_for_is_taken(store: RoundStore) -> None:
    asked = store.runs.create_run(plan(store, None))
    assert (await ask(store, "nightly", asked.run_id)).run_id == asked.run_id


async def test_a_date_of_the_schedule_is_taken_once(store: RoundStore) -> None:
    due = next_three(store.plans.get(plan(store).name).updated_at)
    run = await ask(store, "nightly", at=due)
    assert run.status == "pending"
    with store.database.write() as session:  # the store's own clock has not come to the date yet
        session.execute(update(RunRow).values(created_at=due + timedelta(seconds=1)))
    assert (await ask(store, "nightly", at=due + timedelta(days=1))).run_id == run.run_id  # unfinished: picked up
    end(store, run)
    with pytest.raises(ConflictError, match="its next date is"):
        await ask(store, "nightly", at=due + timedelta(hours=23))
    assert (await ask(store, "nightly", at=due + timedelta(days=1))).run_id != run.run_id


@pytest.mark.parametrize("trained", [None, timedelta(days=-7), timedelta(days=300)])
async def test_a_clock_that_was_ahead_and_is_put_back_stops_no_schedule(
    store: RoundStore, trained: timedelta | None
) -> None:
    """Whether the plan was changed by that clock alone, trained before it, or trained by it, too."""
    due = next_three(store.plans.get(plan(store).name).updated_at)
    ahead = due + timedelta(days=365)
    with store.database.write() as session:
        session.execute(update(PlanRow).values(updated_at=ahead))
    if trained is not None:
        end(store, store.runs.create_run(store.plans.get("nightly").plan))
        with store.database.write() as session:
            session.execute(update(RunRow).values(created_at=due + trained))
    known = {run.run_id for run in store.runs.list_runs()}
    if trained != timedelta(days=-7):  # after that training a date has come already
        with pytest.raises(ConflictError, match="its next date is"):
            await ask(store, "nightly", at=due - timedelta(hours=5))
    made = await ask(store, "nightly", at=due + timedelta(seconds=1))
    assert made.run_id not in known
    with store.database.write() as session:
        of_it = update(RunRow).where(RunRow.run_id == made.run_id)
        session.execute(of_it.values(created_at=due + timedelta(seconds=2)))
    end(store, made)
    with pytest.raises(ConflictError, match="its next date is"):
        await ask(store, "nightly", at=due + timedelta(seconds=3))


@pytest.mark.parametrize("early", [timedelta(minutes=1), timedelta(hours=5)])
async def test_before_the_date_nothing_is_started(store: RoundStore, early: timedelta) -> None:
    due = next_three(store.plans.get(plan(store).name).updated_at)
    with pytest.raises(ConflictError, match=r"nobody asked for this run of plan 'nightly': its next date is .* UTC"):
        await ask(store, "nightly", at=due - early)
    assert store.runs.list_runs() == []


async def test_a_date_that_comes_while_the_plan_tunes_alone_waits_for_its_end(store: RoundStore) -> None:
    made = store.plans.create(Plan(name="nightly", asset_type="rig", cron="0 3 * * *", tuning="auto")).plan
    alone = store.runs.create_run(tuning_alone(made))
    due = next_three(store.plans.get("nightly").updated_at)
    with store.database.write() as session:  # it was asked for just after the date
        session.execute(update(RunRow).values(created_at=due + timedelta(seconds=1)))
    looks = 0

    async def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        assert store.runs.unfinished_runs() == [store.runs.get_run(alone.run_id)]
        if looks == 3:
            store.runs.finish_run(alone.run_id, "completed", "tuned")

    run = await ordered_run(store, "nightly", None, now=lambda: due + timedelta(seconds=2), sleep=sleep)
    assert looks == 3 and run.run_id != alone.run_id and not run.plan.tunes_only


async def test_a_clock_that_is_a_little_ahead_is_waited_for(store: RoundStore) -> None:
    due, waits = next_three(store.plans.get(plan(store).name).updated_at), list[float]()

    async def sleep(seconds: float) -> None:
        assert store.runs.list_runs() == [], "the date is not there yet"
        waits.append(seconds)

    at = due - timedelta(seconds=20)
    run = await ordered_run(store, "nightly", None, now=lambda: at + timedelta(seconds=sum(waits)), sleep=sleep)
    assert run.plan.name == "nightly" and waits == [20.0]


async def test_the_date_is_one_of_the_time_zone_of_the_plan(store: RoundStore) -> None:
    made = Plan(name="nightly", asset_type="rig", cron="0 3 * * *", timezone="Asia/Tokyo")
    changed = store.plans.create(made).updated_at
    due = next_three(changed + timedelta(hours=9)) - timedelta(hours=9)
    with pytest.raises(ConflictError, match="next date is .* 03:00"):
        await ask(store, "nightly", at=due - timedelta(minutes=2))
    assert (await ask(store, "nightly", at=due)).plan.timezone == "Asia/Tokyo"


@pytest.mark.parametrize(("cron", "paused", "said"), [
    (None, False, "has no schedule, and no run was named"), ("* * * * *", True, "is paused"),
])
async def test_without_a_schedule_that_runs_nothing_is_started(
    store: RoundStore, cron: str | None, paused: bool, said: str
) -> None:
    plan(store, cron, paused=paused)
    with pytest.raises(ConflictError, match=said):
        await ask(store, "nightly", at=datetime.now(UTC) + timedelta(days=2))
    assert store.runs.list_runs() == []


async def test_names_of_plans_and_runs_that_do_not_belong_together_start_nothing(store: RoundStore) -> None:
    asked = store.runs.create_run(plan(store, None))
    plan(store, None, name="other")
    for name, run_id, said in (
        ("other", asked.run_id, "is of plan nightly"),
        ("nightly", "0" * 32, "has no run"),
        ("unknown", None, "no such plan"),
        ("x" * 500, None, "no such plan"),
    ):
        with pytest.raises(ConflictError, match=said) as refused:
            await ask(store, name, run_id)
        assert refused.value.code == "not_asked" and len(str(refused.value)) < 300
    assert [run.run_id for run in store.runs.list_runs()] == [asked.run_id]


async def test_a_run_that_has_ended_is_not_started_again(store: RoundStore) -> None:
    asked = store.runs.create_run(plan(store, None))
    end(store, asked)
    with pytest.raises(ConflictError, match="has ended: failed"):
        await ask(store, "nightly", asked.run_id)


async def test_a_plan_that_was_changed_waits_for_its_next_date(store: RoundStore) -> None:
    plan(store, paused=True)
    store.plans.set_paused("nightly", False)
    changed = store.plans.get("nightly").updated_at
    with pytest.raises(ConflictError, match="its next date"):
        await ask(store, "nightly", at=next_three(changed) - timedelta(minutes=1))


async def test_dates_long_before_a_change_of_the_plan_are_gone(store: RoundStore) -> None:
    """Nobody started them then; only what has just come is kept."""
    made = store.plans.create(Plan(name="nightly", asset_type="rig", cron="0 3 * * *"))
    due = next_three(made.updated_at)
    changed_at(store, store.plans.update(made.plan.model_copy(update={"max_rounds": 7})), due + timedelta(minutes=30))
    with pytest.raises(ConflictError, match="its next date"):
        await ask(store, "nightly", at=due + timedelta(minutes=31))
    assert (await ask(store, "nightly", at=due + timedelta(days=1))).plan.max_rounds == 7


async def test_a_date_leaves_its_entry_in_the_audit_trail_and_nobody_else_picks_it_up(store: RoundStore) -> None:
    due = next_three(store.plans.get(plan(store).name).updated_at)
    run = await ordered_run(store, "nightly", None, owner="me", lease_seconds=60.0, now=lambda: due)
    (event,) = store.audit.list_events()
    assert (event.actor, event.action, event.target) == ("schedule:nightly", "plan.trigger", "plan:nightly")
    assert event.after == {"run_id": run.run_id} and f"{due:%Y-%m-%d} 03:00 UTC" in event.reason
    assert store.runs.stale_runs(grace_seconds=0.0) == []
    assert not store.runs.renew_lease(run.run_id, "another", 60.0)
    assert (await ordered_run(store, "nightly", None, owner="other", now=lambda: due)).run_id == run.run_id
    assert len(store.audit.list_events()) == 1


async def test_an_archived_plan_has_no_dates(store: RoundStore) -> None:
    plan(store)
    store.plans.set_archived("nightly", True)
    with pytest.raises(ConflictError, match="the plan is archived"):
        await ask(store, "nightly", at=datetime.now(UTC) + timedelta(days=2))
    assert store.runs.list_runs() == []
