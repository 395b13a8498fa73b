"""Site: one customer plant as it is enrolled."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime

from services.contracts.base import Contract, Slug

SiteStatus = Literal["active", "suspended", "removed"]


class Site(Contract):
    """An enrolled plant. Only ``active`` sites are asked; ``public_key`` is the plant's NATS user nkey.

    ``asset_types``: the kinds of machine that it takes part in. ``last_seen``: when its agent last said hello.
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
