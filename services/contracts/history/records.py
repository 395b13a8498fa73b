"""What the store keeps of a site, a plan, an asset type and a model version."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from services.contracts.access.identity import Sha256
from services.contracts.base import Contract, RunId, Slug
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.contracts.wire.roll import CONNECTED_SECONDS

SiteStatus = Literal["active", "suspended", "removed"]
VersionStatus = Literal["registered", "gates_passed", "gates_failed", "forgotten"]
"""registered: the gates have not been judged yet; forgotten: deleted in the registry with a plant that left."""


class Site(Contract):
    """An enrolled plant. Only ``active`` sites are asked; ``public_key`` is the plant's NATS user nkey.

    ``asset_types``: the kinds of machine that it takes part in. ``last_seen``: when its agent was last known
    to be connected.
    ``former_key``: the key before this one, which holds beside it until ``former_key_until``.
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
    notice: str = ""

    def presence(self, now: datetime) -> str:
        """Whether its agent is there: "connected", "silent for 5 min" or "never"."""
        if self.last_seen is None:
            return "never"
        silent = (now - self.last_seen).total_seconds()
        if silent <= CONNECTED_SECONDS:
            return "connected"
        units = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
        unit, seconds = next(each for each in units if silent >= each[1])
        return f"silent for {silent / seconds:.0f} {unit}"

    def keys_at(self, now: datetime) -> str:
        """Public keys that hold: the site's, and the one before it until its end, apart by a blank."""
        if self.former_key is None or self.former_key_until is None or now >= self.former_key_until:
            return self.public_key
        return f"{self.public_key} {self.former_key}"


class AssetTypeRecord(Contract):
    """A stored asset type."""

    asset_type: AssetType
    fingerprint: Sha256
    created_at: AwareDatetime


class PlanRecord(Contract):
    """A stored plan. A paused plan is not started by its schedule, an archived one not at all.

    ``version`` counts how often the plan was given, from 1 on. ``notices`` follow from the plan and are not stored.
    """

    plan: Plan
    paused: bool = False
    archived: bool = False
    version: int = 1
    created_at: AwareDatetime
    updated_at: AwareDatetime
    notices: tuple[str, ...] = Field(default=(), description="what it says that is allowed and seldom meant")


class PlanVersion(Contract):
    """A plan as somebody gave it. ``actor`` is empty where only the audit trail knows who that was."""

    version: int
    plan: Plan
    actor: str
    reason: str
    created_at: AwareDatetime


class VersionRecord(Contract):
    """What the store knows of a version in the registry: where it came from and what it scored, never the weights."""

    name: Slug
    version: str
    run_id: RunId
    status: VersionStatus = "registered"
    reason: str = ""
    metrics: dict[str, Any] = Field(default_factory=dict)
    created_at: AwareDatetime


class AliasChange(Contract):
    """An alias was set to a version, or taken away (``version`` None)."""

    number: int
    name: Slug
    alias: Slug
    version: str | None
    previous_version: str | None
    actor: str
    reason: str
    at: AwareDatetime
