"""Work that is given up for certain: a client that closes a connection may swallow a cancel, and try the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

AGAIN_SECONDS = 0.2
"""How long a cancelled task has before it is cancelled once more."""

Result = TypeVar("Result")


async def give_up(task: asyncio.Future[Any]) -> None:
    """Cancel a task as often as it takes, and wait for its end; what it raised is not told."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=AGAIN_SECONDS)
    if not task.cancelled():
        task.exception()


async def done_within(work: Coroutine[Any, Any, Result], seconds: float) -> Result:
    """What the work gives; ``TimeoutError`` where it takes longer. One that ends as it is given up has ended."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        await give_up(task)
    if task.cancelled():
        raise TimeoutError
    return task.result()
