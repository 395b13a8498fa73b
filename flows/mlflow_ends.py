"""Ends in MLflow what has ended in the store: a process may die, or MLflow be away, between the two."""

from __future__ import annotations

import logging

from flows.again_and_again import again_and_again
from flows.wiring import FlowContext
from services.contracts.errors import NotFoundError
from services.round_store.runs.run_rows import FINAL

LOG = logging.getLogger("ballast.flows")
LOOK_SECONDS = 60.0


async def watch_ends(context: FlowContext) -> None:
    """Look at the start and every minute, for ever."""
    trouble = "runs that have ended may stand as running in MLflow"
    await again_and_again(lambda: end_left_running(context), LOOK_SECONDS, trouble)


def end_left_running(context: FlowContext) -> list[str]:
    """End every MLflow run that stands as running and whose run the store knows to be over; ids of the runs."""
    ended: list[str] = []
    for run_id in context.registry.running():
        try:
            run = context.store.runs.get_run(run_id)
        except NotFoundError:  # of another store, or forgotten
            continue
        if run.status in FINAL:
            context.registry.end_run(run, run.status)
            LOG.info("run %s has ended, and MLflow knows it now: %s", run_id, run.status)
            ended.append(run_id)
    return ended
