"""What a registry lists without opening a model: names, versions, aliases, and the figures on a version's label."""

from __future__ import annotations

from datetime import datetime

from models.losses.base import Task
from services.contracts.base import Contract, RunId, Slug


class VersionSummary(Contract):
    """A version by its label. ``get`` of the registry gives the whole version."""

    name: Slug
    version: str
    run_id: RunId
    plan: Slug
    method: Slug
    asset_type: Slug
    fingerprint: str
    rounds: int
    certified_gap: float
    worst_case_risk: float | None
    fresh_weight: float
    task: Task = "classification"
    loss: str = "hinge"
    f1: float | None = None
    mae: float | None = None
    coverage: float | None = None
    aliases: tuple[str, ...] = ()
    mlflow_run_id: str
    created_at: datetime


class ModelSummary(Contract):
    """A model by name, with the versions that its aliases stand for."""

    name: Slug
    asset_type: Slug
    champion: str | None = None
    challenger: str | None = None
    previous_champion: str | None = None
