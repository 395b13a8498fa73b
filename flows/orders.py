"""Whether a run was asked for: the store says so, and nobody else.

What Prefect starts carries the name of a plan, and the id of a run where the store has one already; neither is
believed. A run that is named must stand unfinished in the store, for that plan: an operator triggered it there, or its
process was killed. A flow run without an id is one of the plan's schedule: the store's plan must have one that is not
paused, and a date of it must have come since its dates were set and since its last training; while the plan tunes
alone, the date waits. A date's run is made with its entry in the audit trail, and with the lease of whoever asks, so
that nobody else picks it up; in one transaction with a look at the plan, which may be paused or changed meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from prefect.server.schemas.schedules import CronSchedule

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.history.records import PlanRecord
from services.contracts.history.run import Run
from services.round_store.runs.run_rows import FINAL
from services.round_store.store import RoundStore

NOT_ASKED = "not_asked"
"""Code of the error where the store asks for no run."""
SLACK_SECONDS = 30.0
"""By how much Prefect's clock may be ahead of the store's: so long a flow run waits for its date."""
LATE = timedelta(hours=1)
"""How late a date may be taken of a plan that was changed and trained ahead of now alone."""
JUST_COME = timedelta(minutes=10)
"""So long after a date its flow run may still be starting: a plan that is changed meanwhile keeps the date."""
TUNING_SECONDS = 2.0
"""Between two looks whether a tuning has ended, while a date's training waits for it."""


def utc_now() -> datetime:
    """Time of this process."""
    return datetime.now(UTC)


async def ordered_run(
    store: RoundStore,
    plan: str,
    run_id: str | None,
    *,
    owner: str = "",
    lease_seconds: float = 0.0,
    now: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Run:
    """Return the run that the store asks for; make it where a date of the plan's schedule has come.

    A run that is made is under the lease of ``owner`` from its first moment, where one is given.

    Raises
    ------
    ConflictError
        When nobody asked for it, in one line; the store is as it was.
    """
    if run_id is not None:
        return _named(store, plan, run_id)
    while True:
        record = _scheduled(store, plan)
        due = await next_date(record, _since(store, record, now()))
        wait = (due - now()).total_seconds()
        if wait > SLACK_SECONDS:
            raise _refusal(plan, f"its next date is {due:%Y-%m-%d %H:%M} {due.tzname()}")
        if wait > 0:
            await sleep(wait)
        made = order(store, record, due, owner, lease_seconds)
        if made is not None:
            return made
        unfinished = store.runs.unfinished_runs(plan)
        if unfinished and not unfinished[0].plan.tunes_only:
            return unfinished[0]
        if unfinished:
            await sleep(TUNING_SECONDS)  # a tuning alone is not what the date asks for; then the plan may be another


def _scheduled(store: RoundStore, plan: str) -> PlanRecord:
    """A plan whose schedule is in force, or a refusal."""
    try:
        record = store.plans.get(plan)
    except NotFoundError:
        raise _refusal(plan, "the store has no such plan") from None
    if record.plan.cron is None or record.paused or record.archived:
        state = "is paused" if record.paused else "has no schedule, and no run was named"
        state = "is archived" if record.archived else state
        raise _refusal(plan, f"the plan {state}")
    return record


def order(
    store: RoundStore, record: PlanRecord, due: datetime, owner: str = "", lease_seconds: float = 0.0, *,
    missed_at: datetime | None = None,
) -> Run | None:
    """New run of a date, with its audit entry; None where the plan is another by now, or has an unfinished run.

    ``missed_at``: when it was seen that nothing had started the date, where that is so.
    """
    plan, reason = record.plan, f"the schedule's date {due:%Y-%m-%d %H:%M} {due.tzname()}"
    if missed_at is not None:
        seen = missed_at.astimezone(due.tzinfo)
        reason += f", which nothing had started at {seen:%Y-%m-%d %H:%M} {seen.tzname()}"
    with store.atomic() as unit:
        if unit.plans.hold(plan.name) != record or unit.runs.unfinished_runs(plan.name):
            return None
        run = unit.runs.create_run(plan)
        if owner:
            unit.runs.renew_lease(run.run_id, owner, lease_seconds)
        unit.audit.append(
            actor=f"schedule:{plan.name}", role=None, action="plan.trigger", target=f"plan:{plan.name}",
            reason=reason, after={"run_id": run.run_id},
        )
    return run


async def next_date(record: PlanRecord, since: datetime) -> datetime:
    """First date of a plan's schedule at ``since`` or later, as Prefect's own scheduler finds it."""
    assert record.plan.cron is not None
    (date,) = await CronSchedule(cron=record.plan.cron, timezone=record.plan.timezone).get_dates(n=1, start=since)
    return date


async def missed_date(store: RoundStore, record: PlanRecord, at: datetime, earliest: datetime) -> datetime:
    """First date at ``earliest`` or later that has come since the last training ended, or the next one.

    A date that comes during a training is that training's.
    """
    return await next_date(record, max(earliest, _since(store, record, at, ended=True)))


def _since(store: RoundStore, record: PlanRecord, at: datetime, *, ended: bool = False) -> datetime:
    """When its dates were set or it trained last, leaving out what a clock that was ahead, and is put back, wrote."""
    latest = at + timedelta(seconds=SLACK_SECONDS)
    newest = store.runs.list_runs(plan=record.plan.name, limit=1, tunings=False, after=(latest, ""))
    trained = [run.created_at if not ended else run.updated_at if run.status in FINAL else at for run in newest]
    known = [moment for moment in (*_dates_set(store, record), *trained) if moment <= latest]
    return max(known, default=at - LATE)


def _dates_set(store: RoundStore, record: PlanRecord) -> list[datetime]:
    """Moments from which on the plan's dates hold; a change of anything else takes away none that has just come."""
    versions = store.plans.versions(record.plan.name)
    if not versions or versions[-1].created_at != record.updated_at:
        return [record.updated_at]  # it was resumed, or brought back from the archive, since it was given
    dates = (record.plan.cron, record.plan.timezone)
    same = list(takewhile(lambda each: (each.plan.cron, each.plan.timezone) == dates, reversed(versions)))
    begun = [
        event.at for action in ("plan.resume", "plan.restore")
        for event in store.audit.list_events(action=action, target=f"plan:{record.plan.name}", limit=1)
    ]
    return [same[-1].created_at, record.updated_at - JUST_COME, *begun]


def _named(store: RoundStore, plan: str, run_id: str) -> Run:
    try:
        run = store.runs.get_run(run_id)
    except NotFoundError:
        raise _refusal(plan, f"the store has no run {run_id[:40]!r}") from None
    if run.plan.name != plan:
        raise _refusal(plan, f"run {run.run_id} is of plan {run.plan.name}")
    if run.status in FINAL:
        raise _refusal(plan, f"run {run.run_id} has ended: {run.status}")
    return run


def _refusal(plan: str, why: str) -> ConflictError:
    said = (
        f"nobody asked for this run of plan {plan[:40]!r}: {why}; nothing is started. A run is asked for "
        "with `ballast plan trigger`, in the console or through the API"
    )
    return ConflictError(said, code=NOT_ASKED)
