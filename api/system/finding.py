"""What a check of ``ballast doctor`` found."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from services.contracts.base import Contract

State = Literal["ok", "warn", "fail"]


class Finding(Contract):
    """What one check found; ``todo`` is empty where nothing is to be done."""

    check: str
    state: State
    said: str
    todo: str = ""


def span(time: timedelta) -> str:
    """A time in the largest unit of which it has two."""
    seconds = time.total_seconds()
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.1f} seconds"
