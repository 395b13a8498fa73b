"""Waiting for a server, as long as no operator cancels the run that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

from flows.wiring import FlowContext
from services.contracts.history.run import Run
from services.coordinator.run_state.run_errors import RunCancelledError

Answer = TypeVar("Answer")


def tried_until_cancelled(
    context: FlowContext, run: Run, work: Callable[[], Answer]
) -> Callable[[], Awaitable[Answer]]:
    """``work`` in a thread, for a step that is tried again: each further try looks first whether the run is cancelled.

    In a thread, because writing to the registry takes long, and Prefect and the log must not wait for it.
    """
    tries = count()

    async def attempt() -> Answer:
        if next(tries):
            still_wanted(context, run, "the registry")
        return await asyncio.to_thread(work)

    return attempt


def still_wanted(context: FlowContext, run: Run, waits_for: str = "the plant link") -> None:
    """Raise :class:`RunCancelledError` where an operator cancelled a run that waits for a server."""
    if context.store.runs.is_cancelled(run.run_id):
        raise RunCancelledError(f"an operator cancelled the run while it waited for {waits_for}")
