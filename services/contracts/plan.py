"""Plan: what to train for an asset type, with which method, on which schedule, behind which gates."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from services.contracts.base import Contract, Slug
from services.contracts.messages import TrainingSpec


class Gates(Contract):
    """Conditions on a new version before it becomes champion; None: not asked."""

    max_gap: float | None = Field(default=1e-3, gt=0)
    min_f1: float | None = Field(default=None, ge=0, le=1, description="all held-out parts together")
    min_site_f1: float | None = Field(default=None, ge=0, le=1, description="at the worst site")
    min_fresh_weight: float | None = Field(default=None, ge=0, le=1, description="share of weight that answered last")


class Plan(Contract):
    """A plan as an operator writes it."""

    name: Slug
    asset_type: Slug
    method: Slug = "level-bundle"
    parameters: dict[str, float] = Field(default_factory=dict, description="the method's own numbers")
    spec: TrainingSpec = TrainingSpec()
    gap: float = Field(default=1e-3, gt=0, lt=1, description="certified relative gap at which training stops")
    max_rounds: int = Field(default=100, ge=1, le=10_000)
    sites: tuple[Slug, ...] = Field(default=(), description="empty: every active site of the asset type")
    site_weights: Literal["equal", "samples"] = "equal"
    min_sites: int = Field(default=1, ge=1)
    round_deadline_seconds: float = Field(default=60.0, gt=0, le=86_400)
    absence_patience_seconds: float = Field(
        default=60.0, ge=0, le=86_400, description="how long a run waits, below min_sites, before it fails"
    )
    cron: str | None = Field(default=None, description="five-field cron schedule; None: only when triggered")
    timezone: str = "UTC"
    auto_promote: bool = True
    gates: Gates = Gates()
