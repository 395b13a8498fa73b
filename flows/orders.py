"""Whether a run was asked for: the store says so, and nobody else.

What Prefect starts carries the name of a plan, and the id of a run where the store has one already; neither is
believed. A run that is named must stand unfinished in the store, for that plan: an operator triggered it there, or its
process was killed. A flow run without an id is one of the plan's schedule: the store's plan must have one that is not
paused, and a date of it must have come since the plan was changed and since its last run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from prefect.server.schemas.schedules import CronSchedule

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.records import PlanRecord
from services.contracts.run import Run
from services.round_store.runs import FINAL
from services.round_store.store import RoundStore

SLACK_SECONDS = 30.0
"""By how much Prefect's clock may be ahead of the store's: so long a flow run waits for its date."""


def utc_now() -> datetime:
    """Time of this process."""
    return datetime.now(UTC)


async def ordered_run(
    store: RoundStore,
    plan: str,
    run_id: str | None,
    *,
    now: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Run:
    """Return the run that the store asks for; make it where a date of the plan's schedule has come.

    Raises
    ------
    ConflictError
        When nobody asked for it, in one line; the store is as it was.
    """
    if run_id is not None:
        return _named(store, plan, run_id)
    try:
        record = store.plans.get(plan)
    except NotFoundError:
        raise _refusal(plan, "the store has no such plan") from None
    if record.plan.cron is None or record.paused:
        state = "is paused" if record.paused else "has no schedule, and no run was named"
        raise _refusal(plan, f"the plan {state}")
    since = _since(store, record)
    due = await next_date(record, since)
    wait = (due - now()).total_seconds()
    if wait > SLACK_SECONDS:
        raise _refusal(plan, f"its next date is {due:%Y-%m-%d %H:%M} {due.tzname()}")
    if wait > 0:
        await sleep(wait)
    unfinished = store.runs.unfinished_runs(plan)
    return unfinished[0] if unfinished else store.runs.create_run(record.plan)


async def next_date(record: PlanRecord, since: datetime) -> datetime:
    """First date of a plan's schedule at ``since`` or later, as Prefect's own scheduler finds it."""
    assert record.plan.cron is not None
    (date,) = await CronSchedule(cron=record.plan.cron, timezone=record.plan.timezone).get_dates(n=1, start=since)
    return date


def _since(store: RoundStore, record: PlanRecord) -> datetime:
    newest = store.runs.list_runs(plan=record.plan.name, limit=1)
    return max([record.updated_at, *(run.created_at for run in newest)])


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
    said = f"nobody asked for this run of plan {plan[:40]!r}: {why}; nothing is started"
    return ConflictError(said, code="not_asked")
