"""Whether the flows process is at work, as far as one can see from here."""

from __future__ import annotations

from services.process.process_lock import is_held
from services.process.settings import Settings


def flows_at_work(settings: Settings) -> bool | None:
    """True where it runs on this home folder, False where nothing does, None where it may run elsewhere.

    It holds a lock in its own home folder. Where the settings name a Prefect server (``ballast up --only ...``), the
    flows may be another container's or host's, whose folder is not seen here; ``ballast health flows`` there says it.
    """
    if is_held(settings.flows_lock):
        return True
    return None if settings.prefect.api_url else False
