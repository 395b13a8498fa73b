"""What the store keeps of a plan, an asset type and a model version."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from services.contracts.access.identity import Sha256
from services.contracts.base import Contract, RunId, Slug
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan

VersionStatus = Literal["registered", "gates_passed", "gates_failed", "forgotten"]
"""registered: the gates have not been judged yet; forgotten: deleted in the registry with a plant that left."""


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
    """What the store knows of a version in the registry: where it came from and what it scored, never the weights.

    ``signed_sha256``: digest of what the OEM signed; None of a version from before the store kept it.
    """

    name: Slug
    version: str
    run_id: RunId
    status: VersionStatus = "registered"
    reason: str = ""
    signed_sha256: str | None = None
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
