"""Steps of a run as tasks in Prefect's pages: joining, training, evaluating, registering, promoting.

A step is tried again only where trying again helps and the store has nothing to say about it: the registry, which may
be away for a while and takes the same run twice as one. What the plants or the store say is answered once; who waits
for plants is the coordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from prefect import State, Task
from prefect.cache_policies import NO_CACHE

from flows.endings import ending, is_passing
from models.basics import ProblemError
from services.contracts.errors import BallastError, UnavailableError

REGISTRY_WAITS: Final = (2.0, 10.0, 30.0, *[60.0] * 7, *[300.0] * 10, *[600.0] * 30)
"""Seconds before each further try of a step that writes to the registry: six hours in all, for nothing of the run is
lost while its draft is committed. Prefect takes 50 at most."""
Answer = TypeVar("Answer")


class _NoEmptyTraceback(logging.Filter):
    """Prefect logs a failed step as one with a traceback, also where the step answered a state and raised nothing."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let all pass, without a traceback where there is none."""
        if record.exc_info and record.exc_info[0] is None:
            record.exc_info = None
        return True


logging.getLogger("prefect.task_runs").addFilter(_NoEmptyTraceback())


async def step(name: str, work: Callable[[], Awaitable[Answer]], waits: tuple[float, ...] = ()) -> Answer:
    """Do ``work`` as a task of this name; tried again after each of ``waits`` where :func:`may_pass` says so.

    An error ends the task with one line and comes out of here as it was raised.
    """
    raised: list[Exception] = []

    async def attempt() -> Answer | State[Any]:
        raised.clear()
        try:
            return await work()
        except (BallastError, ProblemError) as error:
            raised.append(error)
            return ending(error)

    def helps(*_: object) -> bool:
        return bool(raised) and may_pass(raised[-1])

    # Nothing of a step is stored or compared with earlier ones: its answer stands in the store.
    task = Task(
        attempt, name=name, task_run_name=name, retries=len(waits), retry_delay_seconds=list(waits),
        retry_condition_fn=helps, cache_policy=NO_CACHE, persist_result=False, log_prints=False,
    )
    answer: Any = await task()
    if raised:
        raise raised[-1]
    done: Answer = answer
    return done


def may_pass(error: Exception) -> bool:
    """Whether a service other than the store did not answer: the store's own absence ends the flow run at once."""
    return isinstance(error, UnavailableError) and not is_passing(error)
