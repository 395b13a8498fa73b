"""What a run does besides its rounds, told in the store before each of its steps: `ballast run show`, the console."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from flows.steps import step
from flows.wiring import FlowContext
from services.contracts.errors import UnavailableError
from services.contracts.history.run import Run

LOG = logging.getLogger("ballast.flows")
DOING: Final = {
    "join": "asking who is there",
    "train": "training",
    "train again": "training without the plants whose answers cannot be true",
    "couple": "coupling the planes of the classes",
    "evaluate": "scoring held-out rows in the plants",
    "evaluate again": "scoring held-out rows in the plants again",
    "calibrate": "asking how its answers are to be calibrated",
    "register": "registering the version",
    "promote": "holding the version to its gates",
}
"""By the name of a step in Prefect's pages. A tuning tells its exchanges by itself."""
Answer = TypeVar("Answer")


async def told_step(
    context: FlowContext, run: Run, name: str, work: Callable[[], Awaitable[Answer]], waits: tuple[float, ...] = ()
) -> Answer:
    """Tell, and do the step as :func:`flows.steps.step` does."""
    tell(context, run, DOING[name])
    return await step(name, work, waits)


def tell(context: FlowContext, run: Run, doing: str) -> None:
    """Say what a run does now; where the store has no time for that the run goes on."""
    try:
        context.store.runs.set_doing(run.run_id, doing)
    except UnavailableError as error:
        LOG.warning("run %s: what it does is not told: %s", run.run_id, error)
