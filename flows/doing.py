"""What a run does besides its rounds, told in the store before each of its steps: `ballast run show`, the console."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from flows.steps import step
from flows.wiring import FlowContext
from services.contracts.history.run import Run
from services.coordinator.run_state.doing import tell_doing

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
    tell_doing(context.store.runs, run.run_id, DOING[name])
    return await step(name, work, waits)
