"""What the store keeps of a site."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime

from services.contracts.base import Contract, Slug
from services.contracts.wire.roll import CONNECTED_SECONDS

SiteStatus = Literal["active", "suspended", "removed"]


class FormerKey(Contract):
    """A key that a site had before, and until when it holds."""

    public_key: str
    until: AwareDatetime


class Site(Contract):
    """An enrolled plant. Only ``active`` sites are asked; ``public_key`` is the plant's NATS user nkey.

    ``asset_types``: the kinds of machine that it takes part in. ``last_seen``: when its agent was last known
    to be connected.
    ``former_key``: the key before this one, which holds beside it until ``former_key_until``.
    ``earlier_keys``: those before that one whose own ends had not come when it was changed, the newest first.
    ``notice``: what stands in its way, in one line, such as two agents under its key.
    """

    site_id: Slug
    public_key: str
    asset_types: tuple[Slug, ...] = ()
    status: SiteStatus = "active"
    description: str = ""
    enrolled_at: AwareDatetime
    updated_at: AwareDatetime
    last_seen: AwareDatetime | None = None
    agent_version: str = ""
    former_key: str | None = None
    former_key_until: AwareDatetime | None = None
    earlier_keys: tuple[FormerKey, ...] = ()
    notice: str = ""

    def presence(self, now: datetime) -> str:
        """Whether its agent is there: "connected", "silent for 5 min", "silent since ..." or "never".

        Who was seen later than now was seen before the clock was put back: who is there is noted every few seconds.
        """
        if self.last_seen is None:
            return "never"
        silent = (now - self.last_seen).total_seconds()
        if silent < -CONNECTED_SECONDS:
            return "silent since the clock was put back"
        if silent <= CONNECTED_SECONDS:
            return "connected"
        units = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
        unit, seconds = next(each for each in units if silent >= each[1])
        return f"silent for {silent / seconds:.0f} {unit}"

    def keys_at(self, now: datetime) -> str:
        """Public keys that hold: the site's, and those before it until their ends, apart by a blank."""
        return " ".join([self.public_key, *(each.public_key for each in self.former_keys_at(now))])

    def former_keys_at(self, now: datetime) -> tuple[FormerKey, ...]:
        """Keys of before that hold yet, the newest first."""
        known = self.earlier_keys
        if self.former_key is not None and self.former_key_until is not None:
            known = (FormerKey(public_key=self.former_key, until=self.former_key_until), *known)
        return tuple(each for each in known if now < each.until)
