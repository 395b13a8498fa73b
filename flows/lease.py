"""Our own lease on a run: what decides who drives it, whatever state Prefect believes it to be in."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.contracts.errors import ConflictError
from services.coordinator.ports import RunStore


def new_owner() -> str:
    """Name of this process as an owner of leases."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


@asynccontextmanager
async def held_lease(leases: RunStore, run_id: str, owner: str, seconds: float) -> AsyncIterator[None]:
    """Hold the lease on a run while inside.

    A process that was killed leaves its lease behind until it expires, so taking it waits that long before it gives up
    with :class:`ConflictError`. The task inside is cancelled when the lease is lost to another process.
    """
    for _ in range(int(seconds) + 3):
        if leases.renew_lease(run_id, owner, seconds):
            break
        await asyncio.sleep(1.0)
    else:
        raise ConflictError(f"run {run_id} is being driven by another process", code="run_in_progress")
    driver = asyncio.current_task()
    keeper = asyncio.create_task(_keep(leases, run_id, owner, seconds, driver))
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)
        leases.release_lease(run_id, owner)


async def _keep(
    leases: RunStore, run_id: str, owner: str, seconds: float, driver: asyncio.Task[object] | None
) -> None:
    while True:
        await asyncio.sleep(seconds / 4)
        if not leases.renew_lease(run_id, owner, seconds):
            if driver is not None:
                driver.cancel("the lease on the run was lost")
            return
