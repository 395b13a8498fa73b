"""What the prediction API takes and answers."""

from __future__ import annotations

from pydantic import Field

from services.contracts.base import Contract


class ContributingSensor(Contract):
    """A feature's share in the decision.

    ``contribution`` adds to the score of the diagnosed class, counted from a sample with every feature in the middle of
    its sensor range: the contributions of all features sum to the score minus that sample's score.
    """

    feature: str
    value: float
    unit: str
    contribution: float


class Diagnosis(Contract):
    """Diagnosis of one measurement.

    ``robustness_radius`` is the smallest move of the scaled features, in the model's transport norm, that changes the
    class; None where no move of any size does. ``clipped`` names the features that were outside their sensor range and
    were clipped to it, ``imputed`` the optional ones that were missing and were set to the middle of their range. With
    ``abstained`` true, ``fault_class`` is the best guess that was not trusted, and ``reason`` says why.
    """

    fault_class: str
    severity: int
    scores: dict[str, float]
    robustness_radius: float | None
    contributing_sensors: tuple[ContributingSensor, ...]
    clipped: tuple[str, ...] = ()
    imputed: tuple[str, ...] = ()
    abstained: bool = False
    reason: str = ""


class DiagnoseRequest(Contract):
    """One or many samples, each a mapping of feature name to value in the contract's unit."""

    samples: tuple[dict[str, float], ...] = Field(min_length=1, max_length=10_000)
    units: dict[str, str] = Field(default_factory=dict, description="optional: units to check against the contract")
    alias: str = Field(default="champion", description="alias or version number")


class DiagnoseResponse(Contract):
    """Diagnoses in the order of the samples."""

    model: str
    model_version: str
    run_id: str
    diagnoses: tuple[Diagnosis, ...]
