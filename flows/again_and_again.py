"""Looks that flows take for ever: one that fails is told of, and the next one comes as if it had not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from services.contracts.errors import BallastError

LOG = logging.getLogger("ballast.flows")


async def again_and_again(look: Callable[[], object], seconds: float, trouble: str) -> None:
    """Look at once and then every so many seconds, in a thread; ``trouble`` says what a failure means."""
    while True:
        try:
            await asyncio.to_thread(look)
        except (BallastError, OSError) as error:
            LOG.warning("%s: %s", trouble, error)
        await asyncio.sleep(seconds)
