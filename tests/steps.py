"""A step of a run as Prefect does it (``flows.steps``), without Prefect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from flows.steps import may_pass

Answer = TypeVar("Answer")


async def tried_again(
    work: Callable[[], Awaitable[Answer]], waits: Sequence[float], pause: Callable[[float], Awaitable[None]]
) -> Answer:
    """Do ``work``; again after a pause of each of ``waits`` seconds, as long as it fails with what may pass."""
    for wait in waits:
        try:
            return await work()
        except Exception as error:  # of any kind, as a task takes it; what does not pass comes out as it was raised
            if not may_pass(error):
                raise
        await pause(wait)
    return await work()
