"""Whether a site agent is at work: it notes so in a file beside its log while it is connected, and nothing else.

For supervisors that ask by a command (``ballast-site health``), as a container's health check does. The file's time
says whether the agent is connected, its one line which asset type it uses. Nothing of it leaves the plant.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from services.contracts.errors import UnavailableError
from services.site_agent.settings import SiteSettings

BEAT_SECONDS = 5.0  # between two stamps of the file that a probe reads
STALE_SECONDS = 30.0
"""Older than that, the note is of an agent that is gone, stands still, or has lost its connection."""


def note(settings: SiteSettings) -> Path:
    """File whose time says when the agent was last connected."""
    return settings.log.with_suffix(".alive")


async def beat(
    settings: SiteSettings, is_connected: Callable[[], bool], seconds: float = BEAT_SECONDS,
    told: Callable[[], str] = lambda: "",
) -> None:
    """Keep the note fresh while the link is connected, for ever. A disk that is full is no reason to end the agent.

    ``told``: what stands in the note.
    """
    while True:
        if is_connected():
            try:
                note(settings).touch(mode=0o600)
                note(settings).write_text(told(), encoding="utf-8")
            except OSError:
                pass
        await asyncio.sleep(seconds)


def told_by(settings: SiteSettings) -> str:
    """What the agent wrote into its note; empty where it did not."""
    try:
        return note(settings).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def check_alive(settings: SiteSettings, now: float | None = None) -> float:
    """Seconds since the agent was last seen connected; ``UnavailableError`` where that is too long, or never was.

    A note of later than now was made before the clock was put back: one that is made every few seconds would be fresh.
    """
    try:
        seen = note(settings).stat().st_mtime
    except FileNotFoundError:
        raise UnavailableError(f"no agent of {settings.site_id} was ever connected from here") from None
    since = (time.time() if now is None else now) - seen
    if since > STALE_SECONDS:
        raise UnavailableError(f"the agent of {settings.site_id} was last connected {since:.0f} s ago")
    if since < -STALE_SECONDS:
        raise UnavailableError(f"the agent of {settings.site_id} was last connected before the clock was put back")
    return max(0.0, since)
