"""Plants that stand still, and with them what waits for their answer."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.standstill import stand_still


@contextmanager
def standing(works: Any, site: str) -> Iterator[None]:
    """A plant's agent is stopped while inside, and goes on afterwards."""
    stand_still(works.agents[site].pid)
    try:
        yield
    finally:
        works.agents[site].send_signal(signal.SIGCONT)
