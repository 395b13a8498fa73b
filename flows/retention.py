"""Once a day: forget what the settings say is old, in the store and in Prefect."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from uuid import UUID

from httpx import HTTPError
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterEndTime
from prefect.exceptions import ObjectNotFound

from flows.wiring import FlowContext
from services.contracts.errors import BallastError
from services.round_store.tidying import tidy

LOG = logging.getLogger("ballast.flows")
ACTOR = "flows:retention"
FIRST_SECONDS = 600.0  # after the start: what comes up has more urgent things to do
EVERY_SECONDS = 24 * 3600.0  # once a day: what is deleted is months old
AT_ONCE = 200  # Prefect's own limit of a page


async def watch_retention(context: FlowContext, client: PrefectClient) -> None:
    """Tidy once a day, for ever."""
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        try:
            done = await asyncio.to_thread(
                tidy, context.store, context.settings.retention, actor=ACTOR, role=None
            )
            ended = await forget_flow_runs(client, context.settings.retention.prefect_days)
            if done.runs or done.events or ended:
                LOG.info("forgotten: %d rounds of %d runs, %d events, %d flow runs of Prefect",
                         done.rounds, len(done.runs), done.events, ended)
        except (BallastError, HTTPError, OSError) as error:
            LOG.warning("what is old is not forgotten: %s", error)
        await asyncio.sleep(EVERY_SECONDS)


async def forget_flow_runs(client: PrefectClient, days: int | None, now: datetime | None = None) -> int:
    """Take flow runs that ended more than ``days`` ago out of Prefect; how many. None keeps them all."""
    if days is None:
        return 0
    before = (now or datetime.now(UTC)) - timedelta(days=days)
    old = FlowRunFilter(end_time=FlowRunFilterEndTime(before_=before))
    count, seen = 0, set[UUID]()
    while found := await client.read_flow_runs(flow_run_filter=old, limit=AT_ONCE):
        if seen >= {each.id for each in found}:
            break  # this server keeps what it is told to delete
        for each in found:
            seen.add(each.id)
            try:
                await client.delete_flow_run(each.id)
            except ObjectNotFound:
                continue  # somebody else has taken it away
            count += 1
    return count
