"""What a registry lists without opening a model: names, versions, aliases, and the figures on a version's label."""

from __future__ import annotations

from models.losses.base import Task
from services.contracts.base import Contract, Slug
from services.contracts.model_version import VersionOrigin


class VersionSummary(VersionOrigin):
    """A version by its label. ``get`` of the registry gives the whole version."""

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


class ModelSummary(Contract):
    """A model by name, with the versions that its aliases stand for."""

    name: Slug
    asset_type: Slug
    champion: str | None = None
    challenger: str | None = None
    previous_champion: str | None = None
