"""Our own lease on a run: what decides who drives it, whatever state Prefect believes it to be in."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from services.contracts.errors import BallastError, ConflictError
from services.coordinator.asking.ports import RunStore

LOG = logging.getLogger("ballast.flows")
IN_PROGRESS = "run_in_progress"
"""Code of the error where another process drives the run."""


def new_owner() -> str:
    """Name of this process as an owner of leases."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


@asynccontextmanager
async def held_lease(leases: RunStore, run_id: str, owner: str, seconds: float) -> AsyncIterator[None]:
    """Hold the lease on a run while inside.

    A process that was killed leaves its lease behind until it expires, so taking it waits that long before it gives up
    with :class:`ConflictError`. So it does inside where the lease is lost to another process: the task is cancelled.
    A thread of its own prolongs the lease, so that nothing that is done inside, however long, lets it lapse.
    """
    for _ in range(int(seconds) + 3):
        if leases.renew_lease(run_id, owner, seconds):
            break
        await asyncio.sleep(1.0)
    else:
        raise ConflictError(f"run {run_id} is being driven by another process", code=IN_PROGRESS)
    driver, loop = asyncio.current_task(), asyncio.get_running_loop()
    lost, done = threading.Event(), threading.Event()

    def give_up() -> None:
        if driver is not None and not done.is_set():
            lost.set()
            driver.cancel("the lease on the run was lost")

    keeper = threading.Thread(
        target=_keep, args=(leases, run_id, owner, seconds, done, lambda: loop.call_soon_threadsafe(give_up)),
        name=f"lease on {run_id[:8]}", daemon=True,
    )
    keeper.start()
    try:
        yield
    except asyncio.CancelledError:
        if driver is None or not lost.is_set():
            raise
        driver.uncancel()
        raise ConflictError(f"run {run_id} is being driven by another process now", code=IN_PROGRESS) from None
    finally:
        done.set()
        await asyncio.to_thread(keeper.join)
        leases.release_lease(run_id, owner)


def _keep(
    leases: RunStore, run_id: str, owner: str, seconds: float, done: threading.Event, lose: Callable[[], object]
) -> None:
    while not done.wait(seconds / 4):
        try:
            if not leases.prolong_lease(run_id, owner, seconds):
                lose()
                return
        except BallastError as error:  # a lease that nobody can read, nobody can take either
            LOG.warning("the lease on run %s could not be prolonged yet: %s", run_id, error)
