"""Dates that have come are trained: what a change just then leaves of them, and what no flow run took."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from flows.missed_dates import MissedDates
from flows.orders import next_date, ordered_run
from services.contracts.errors import ConflictError
from services.contracts.history.records import PlanRecord
from services.contracts.history.run import Run
from services.contracts.plans.overrides import tuning_alone
from services.contracts.plans.plan import Plan
from services.round_store.store import RoundStore
from services.round_store.tables.runs import RunRow
from tests.flows.test_orders import ask, changed_at, end, next_three


def nightly(store: RoundStore, **changes: object) -> PlanRecord:
    values = {"name": "nightly", "asset_type": "rig", "cron": "0 3 * * *"} | changes
    return store.plans.create(Plan.model_validate(values))


@pytest.mark.parametrize("ago", [timedelta(seconds=1), timedelta(minutes=9)])
async def test_a_change_of_the_plan_while_its_flow_starts_takes_the_date_not_away(
    store: RoundStore, ago: timedelta
) -> None:
    made = nightly(store)
    due = next_three(made.updated_at)
    for rounds in (6, 7):
        changed_at(store, store.plans.update(made.plan.model_copy(update={"max_rounds": rounds})), due + ago)
    assert (await ask(store, "nightly", at=due + ago + timedelta(seconds=1))).plan.max_rounds == 7


@pytest.mark.parametrize("change", [
    {"cron": "30 4 * * *"}, {"timezone": "Asia/Tokyo"}, {"cron": "30 4 * * *", "timezone": "Asia/Tokyo"},
])
async def test_new_dates_hold_from_the_change_on(store: RoundStore, change: dict[str, str]) -> None:
    """Also where the plan is changed once more, just after one of the new dates would have come."""
    was = nightly(store)
    due = await next_date(was.model_copy(update={"plan": was.plan.model_copy(update=change)}), was.updated_at)
    new = store.plans.update(was.plan.model_copy(update=change))
    changed_at(store, new, due + timedelta(seconds=1))
    changed_at(store, store.plans.update(new.plan.model_copy(update={"max_rounds": 7})), due + timedelta(seconds=2))
    with pytest.raises(ConflictError, match="its next date"):
        await ask(store, "nightly", at=due + timedelta(seconds=3))


@pytest.mark.parametrize("action", ["plan.resume", "plan.restore", "plan.update"])
async def test_a_date_before_the_plan_was_resumed_is_not_brought_back_by_a_change(
    store: RoundStore, action: str
) -> None:
    just_now = datetime.now(UTC) - timedelta(minutes=2)
    made = nightly(store, cron=f"{just_now.minute} * * * *")
    changed_at(store, made, just_now - timedelta(minutes=30))
    store.audit.append(actor="ada", role=None, action=action, target="plan:nightly")
    store.plans.update(made.plan.model_copy(update={"max_rounds": 7}))
    if action == "plan.update":
        assert (await ask(store, "nightly")).plan.max_rounds == 7
    else:
        with pytest.raises(ConflictError, match="its next date"):
            await ask(store, "nightly")


@pytest.mark.parametrize("how", ["paused", "archived", "changed"])
async def test_a_plan_is_as_it_is_when_its_date_comes(store: RoundStore, how: str) -> None:
    """Prefect's clock is ahead: the flow waits for the date, and somebody changes the plan meanwhile."""
    made = nightly(store)
    due = next_three(made.updated_at)
    moment = [due - timedelta(seconds=20)]

    async def sleep(seconds: float) -> None:
        moment[0] += timedelta(seconds=seconds)
        if how == "changed":
            store.plans.update(made.plan.model_copy(update={"max_rounds": 7}))
        else:
            getattr(store.plans, f"set_{how}")("nightly", True)

    asked = ordered_run(store, "nightly", None, now=lambda: moment[0], sleep=sleep)
    if how == "changed":
        assert (await asked).plan.max_rounds == 7
    else:
        with pytest.raises(ConflictError, match=f"the plan is {how}"):
            await asked
        assert store.runs.list_runs() == []


class Watch:
    """Looks at the plans by a clock of the test's."""

    def __init__(self, store: RoundStore, began: datetime) -> None:
        self.store, self.moment = store, began
        self.missed = MissedDates(store, now=lambda: self.moment)

    async def look(self, at: datetime) -> list[Run]:
        """Runs that are unfinished after a look at a moment."""
        self.moment = at
        before = {run.run_id for run in self.store.runs.unfinished_runs()}
        names = await self.missed.order(self.store.plans.list_plans())
        found = self.store.runs.unfinished_runs()
        assert names == [run.plan.name for run in found if run.run_id not in before]
        return found


def created_at(store: RoundStore, run: Run, at: datetime) -> None:
    """Let a run have been made, and changed last, at another time."""
    with store.database.write() as session:
        session.execute(update(RunRow).where(RunRow.run_id == run.run_id).values(created_at=at, updated_at=at))


async def test_both_times_of_a_missed_date_are_in_the_plans_own_time(store: RoundStore) -> None:
    record = nightly(store, timezone="Asia/Tokyo")
    due = await next_date(record, record.updated_at)
    at = datetime.fromtimestamp(due.timestamp(), UTC)
    watch = Watch(store, at)
    assert await watch.look(at) == [] and await watch.look(at + timedelta(minutes=4)) != []
    (event,) = store.audit.list_events()
    assert event.reason == f"the schedule's date {due:%F} 03:00 JST, which nothing had started at {due:%F} 03:04 JST"


async def test_a_date_that_nothing_started_is_asked_for_once(
    store: RoundStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Its flow run is Prefect's for three minutes."""
    due = next_three(nightly(store).updated_at)
    watch = Watch(store, due - timedelta(minutes=1))
    with caplog.at_level(logging.WARNING, "ballast.flows"):
        for late in (-60, 0, 1, 179):
            assert await watch.look(due + timedelta(seconds=late)) == []
        (run,) = await watch.look(due + timedelta(seconds=181))
        assert await watch.look(due + timedelta(seconds=190)) == [run]
    (event,) = store.audit.list_events()
    assert (event.actor, event.action, event.after) == ("schedule:nightly", "plan.trigger", {"run_id": run.run_id})
    seen = f"which nothing had started at {due:%F} 03:03 UTC"
    assert event.reason == f"the schedule's date {due:%F} 03:00 UTC, {seen}"
    assert [record.getMessage() for record in caplog.records] == [
        f"plan nightly: nothing started its date {due:%F} 03:00; run {run.run_id} does"
    ]
    created_at(store, run, due + timedelta(seconds=181))
    end(store, run)
    created_at(store, run, due + timedelta(minutes=10))
    assert await watch.look(due + timedelta(hours=23)) == []
    assert await watch.look(due + timedelta(days=1, minutes=4)) != []


async def test_a_date_that_was_trained_or_came_during_a_training_is_not_asked_for(store: RoundStore) -> None:
    due = next_three(nightly(store).updated_at)
    run = await ordered_run(store, "nightly", None, now=lambda: due)
    created_at(store, run, due)
    watch = Watch(store, due)
    (driven,) = await watch.look(due + timedelta(days=1, hours=1))  # the next date comes, and goes
    assert driven.run_id == run.run_id
    end(store, run)
    created_at(store, run, due)
    with store.database.write() as session:
        session.execute(update(RunRow).values(updated_at=due + timedelta(days=1, hours=2)))
    assert await watch.look(due + timedelta(days=1, hours=2, minutes=5)) == []
    assert await watch.look(due + timedelta(days=2, minutes=5)) != []


@pytest.mark.parametrize(("began", "asked"), [(timedelta(minutes=50), True), (timedelta(minutes=70), False)])
async def test_a_process_that_begins_later_takes_up_the_last_hour(
    store: RoundStore, began: timedelta, asked: bool
) -> None:
    due = next_three(nightly(store).updated_at)
    watch = Watch(store, due + began)
    for seconds in (0, 100, 179):
        assert await watch.look(due + began + timedelta(seconds=seconds)) == []
    assert bool(await watch.look(due + began + timedelta(seconds=181))) is asked


@pytest.mark.parametrize("how", ["paused", "archived", "no schedule", "tunes"])
async def test_what_has_no_date_now_is_not_asked_for(store: RoundStore, how: str) -> None:
    made = nightly(store, tuning="auto")
    due = next_three(made.updated_at)
    watch = Watch(store, due)
    assert await watch.look(due) == []
    known = []
    if how == "tunes":
        known = [store.runs.create_run(tuning_alone(made.plan))]
    elif how == "no schedule":
        store.plans.update(made.plan.model_copy(update={"cron": None}))
    else:
        getattr(store.plans, f"set_{how}")("nightly", True)
    assert await watch.look(due + timedelta(minutes=4)) == known


@pytest.mark.parametrize("is_there", [False, True])
async def test_a_date_that_was_started_by_a_clock_that_was_ahead_is_made_up_for(
    store: RoundStore, is_there: bool
) -> None:
    """Prefect starts a date once: by the clock of then it has, and the store refused it or trained for that time."""
    due = next_three(nightly(store).updated_at)
    ahead = due + timedelta(days=40)
    run = await ordered_run(store, "nightly", None, now=lambda: ahead)
    end(store, run)
    created_at(store, run, ahead)
    watch = Watch(store, due - timedelta(minutes=1))
    if is_there:  # the process has looked by that clock, which is put back
        watch = Watch(store, ahead)
        assert await watch.look(ahead + timedelta(minutes=1)) == []
        assert await watch.look(due - timedelta(minutes=1)) == []
    assert await watch.look(due + timedelta(seconds=1)) == []
    assert [made.run_id != run.run_id for made in await watch.look(due + timedelta(seconds=181))] == [True]
