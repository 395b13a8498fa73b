"""Ends in MLflow what has ended in the store: a process may die, or MLflow be away, between the two."""

from __future__ import annotations

import asyncio
import logging

from flows.wiring import FlowContext
from services.contracts.errors import BallastError, NotFoundError
from services.registry.labels import ENDINGS

LOG = logging.getLogger("ballast.flows")
LOOK_SECONDS = 60.0


async def watch_ends(context: FlowContext) -> None:
    """Look at the start and every minute, for ever."""
    while True:
        try:
            await asyncio.to_thread(end_left_running, context)
        except (BallastError, OSError) as error:
            LOG.warning("runs that have ended may stand as running in MLflow: %s", error)
        await asyncio.sleep(LOOK_SECONDS)


def end_left_running(context: FlowContext) -> list[str]:
    """End every MLflow run that stands as running and whose run the store knows to be over; ids of the runs."""
    ended: list[str] = []
    for run_id in context.registry.running():
        try:
            run = context.store.runs.get_run(run_id)
        except NotFoundError:  # of another store, or forgotten
            continue
        if run.status in ENDINGS:
            context.registry.end_run(run, run.status)
            LOG.info("run %s has ended, and MLflow knows it now: %s", run_id, run.status)
            ended.append(run_id)
    return ended
