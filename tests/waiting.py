"""Waiting for an event: as long as a loaded machine may take, and not a moment longer than the event does."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 180.0
"""Seconds after which an event does not come any more; many times what it takes on two busy cores."""


def wait_until(holds: Callable[[], bool], what: str, every: float = 0.05) -> None:
    """Return as soon as the condition holds, which is asked ``every`` so many seconds; fail where it never does."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"no {what} in {PATIENCE:g} s"
        time.sleep(every)  # most of what is waited for is asked of a database
