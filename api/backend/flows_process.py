"""Whether the flows process is at work, as far as one can see from here."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from services.process.process_lock import idle_seconds, is_held
from services.process.settings import Settings

HANGS: Final = timedelta(minutes=2)
"""The flows process looks once a second; a look that waits for a database or Prefect may take a minute."""


def flows_at_work(settings: Settings) -> bool | None:
    """True where it runs on this home folder, False where nothing does, None where it may run elsewhere.

    It holds a lock in its own home folder. Where the settings name a Prefect server (``ballast up --only ...``), the
    flows may be another container's or host's, whose folder is not seen here; ``ballast health flows`` there says it.
    """
    if is_held(settings.flows_lock):
        return True
    return None if settings.prefect.api_url else False


def flows_idle(settings: Settings) -> timedelta:
    """Since when the flows process of this home folder has not looked for what waits; of one that runs alone."""
    return timedelta(seconds=idle_seconds(settings.flows_lock))
