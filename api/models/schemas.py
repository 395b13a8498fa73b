"""What the endpoints of models take and give where no contract of the services says it already."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints

from models.losses.base import Task
from services.contracts.base import Contract, RunId, Slug
from services.contracts.evaluation.calibration import CalibrationFacts
from services.contracts.evaluation.diagnosis import VersionName
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import GateResult
from services.contracts.versions.version_facts import ModelSummary, VersionFacts, VersionSummary

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
    calibration_facts: CalibrationFacts | None = Field(default=None, description="of sets, intervals, probabilities")
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


class Unlearning(Contract):
    """A plant that left a model."""

    site: Slug
    reason: Reason
    purge: Literal["promotion", "now"] = Field(
        default="promotion", description="when older versions go with all that is held of the plant: when a version "
        "without it is champion, or as soon as there is one",
    )


class Unlearned(Contract):
    """The run that trains without a plant, and what goes when it is forgotten.

    ``versions``: those that had it, which are deleted then; ``runs``: those in which it bears a pseudonym then.
    ``other_models`` have it too: unlearn it there as well. ``backups``: files of those that were made since the first
    run with it, the newest first. ``stays``: what is not reached from here.
    """

    model: Slug
    run_id: RunId
    versions: tuple[str, ...]
    runs: tuple[RunId, ...]
    other_models: tuple[Slug, ...]
    purge: Literal["promotion", "now"]
    backups: tuple[str, ...]
    stays: str


class ChampionChange(Contract):
    """A model has a new champion."""

    model: Slug
    version: str
    previous_version: str | None
    actor: str
    reason: str
