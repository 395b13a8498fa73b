"""What the store keeps beside a plan, an asset type and a model version."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from services.contracts.asset_type import AssetType
from services.contracts.base import Contract, RunId, Slug
from services.contracts.identity import Sha256
from services.contracts.plan import Plan

VersionStatus = Literal["registered", "gates_passed", "gates_failed"]
"""registered: the gates have not been judged yet."""


class AssetTypeRecord(Contract):
    """A stored asset type."""

    asset_type: AssetType
    fingerprint: Sha256
    created_at: AwareDatetime


class PlanRecord(Contract):
    """A stored plan. A paused plan is not started by its schedule."""

    plan: Plan
    paused: bool = False
    created_at: AwareDatetime
    updated_at: AwareDatetime


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
