"""What the endpoints of models take and give where no contract of the services says it already."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints

from models.losses.base import Task
from services.contracts.base import Contract, Slug
from services.contracts.diagnosis import VersionName
from services.contracts.model_version import ModelSummary, ModelVersion, VersionFacts, VersionSummary
from services.contracts.report import GateResult

Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=500)]
"""Why something is done: it goes into the audit trail."""


class Models(Contract):
    """Models by name."""

    models: tuple[ModelSummary, ...]


class ModelDetail(ModelSummary):
    """A model with its versions, the newest first."""

    versions: tuple[VersionSummary, ...]


class VersionDetail(VersionFacts):
    """A version: what it was trained for, its certificates, sites and gates. The weights stay in the registry.

    ``worst_case_risk`` is that of the weights over the plants' balls. ``objective`` is the value of what the method
    minimised, which ``objective_name`` says, ``lower_bound`` what no model can be below, and ``certified_gap`` their
    relative distance. ``f1`` belongs to a version of classes; the scores in the target's unit
    and ``error_interval`` to one of a target.
    """

    aliases: tuple[str, ...]
    mlflow_run_id: str
    fingerprint: str
    task: Task
    gates: tuple[GateResult, ...] | None = Field(description="null where the run is not in the store any more")

    @classmethod
    def of(cls, version: ModelVersion, label: VersionSummary, gates: tuple[GateResult, ...] | None) -> Self:
        """Detail of a version as the registry gives it, with its label there."""
        registered = {"aliases": label.aliases, "mlflow_run_id": label.mlflow_run_id, "fingerprint": label.fingerprint}
        return cls.of_record(version, **registered, gates=gates)


class Promotion(Contract):
    """A version to make champion."""

    version: VersionName = Field(default="challenger", description="a version's number or alias")
    reason: Reason
    ignore_gates: bool = Field(default=False, description="promote also where a gate of its plan does not hold")


class Rollback(Contract):
    """The wish to go back to the champion before this one."""

    reason: Reason


class ChampionChange(Contract):
    """A model has a new champion."""

    model: Slug
    version: str
    previous_version: str | None
    actor: str
    reason: str
