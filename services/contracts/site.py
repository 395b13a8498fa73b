"""Site: one customer plant as it is enrolled."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime

from services.contracts.base import Contract, Slug

SiteStatus = Literal["active", "suspended", "removed"]


class Site(Contract):
    """An enrolled plant. Only ``active`` sites are asked; ``public_key`` is the plant's NATS user nkey.

    ``asset_types``: the kinds of machine that it takes part in. ``last_seen``: when its agent last said hello.
    ``former_key``: the key before this one, which holds beside it until ``former_key_until``.
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

    def keys_at(self, now: datetime) -> str:
        """Public keys that hold: the site's, and the one before it until its end, apart by a blank."""
        if self.former_key is None or self.former_key_until is None or now >= self.former_key_until:
            return self.public_key
        return f"{self.public_key} {self.former_key}"
