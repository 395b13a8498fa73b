"""What the prediction API takes and answers."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import Field, StringConstraints, model_validator

from services.contracts.base import VERSION_PATTERN, Contract
from services.contracts.evaluation.calibration import CalibrationFacts, Coverage

Reading = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A measured value: a JSON number. A text, true, null or an infinite number is refused, never guessed at."""

MOST_SAMPLES: Final = 10_000
"""Samples of one request; a stream of lines (NDJSON) has no such limit."""

Sample = Annotated[dict[str, Reading], Field(min_length=1)]
VersionName = Annotated[str, StringConstraints(pattern=VERSION_PATTERN)]
"""Number or alias of a model version."""


class ContributingSensor(Contract):
    """A feature's share in the decision.

    ``contribution`` adds to the score of the diagnosed class, counted from a sample with every feature in the middle of
    its sensor range: the contributions of all features sum to the score minus that sample's score. So it is with
    a model of splines, each with what its line rises; with another lift the score bends, and the contribution is that
    of its slope at the sample. Where all classes were trained as one problem (``crammer_singer``) the score is that
    above the mean of all classes' scores, for only differences of scores mean anything there.
    """

    feature: str
    value: float
    unit: str
    contribution: float


class Diagnosis(Contract):
    """Diagnosis of one measurement.

    ``robustness_radius`` is the smallest move of the scaled features, in the model's transport norm, that changes the
    class; None where no move of any size does. With a lifted model it is a lower bound of that. Moves beyond the
    sensor ranges count too, so it is a lower bound of the smallest move inside them; but with a model of splines it
    speaks of moves inside, beyond which no line changes. ``class_set`` holds the true class of a share ``coverage`` of
    all measurements at least (``models.conformal``), ``probabilities`` are calibrated on held-out rows; both are null
    for a version without a calibration. ``clipped`` names the features
    that were outside their sensor range and were clipped to it, ``imputed`` the optional ones that were missing and
    were set to the middle of their range. With ``abstained`` true, ``fault_class`` is the best guess that was not
    trusted, and ``reason`` says why.
    """

    fault_class: str
    severity: int
    scores: dict[str, float]
    robustness_radius: float | None
    contributing_sensors: tuple[ContributingSensor, ...]
    class_set: tuple[str, ...] | None = Field(default=None, description="classes that it can be, the likeliest first")
    coverage: float | None = Field(default=None, description="of the class set")
    probabilities: dict[str, float] | None = Field(default=None, description="of the classes, calibrated")
    clipped: tuple[str, ...] = ()
    imputed: tuple[str, ...] = ()
    abstained: bool = False
    reason: str = ""


class DiagnoseRequest(Contract):
    """Samples to diagnose: either ``samples`` (one or many) or ``sample`` (one), feature name to value in its unit."""

    samples: tuple[Sample, ...] | None = Field(default=None, min_length=1, max_length=MOST_SAMPLES)
    sample: Sample | None = None
    units: dict[str, str] = Field(default_factory=dict, description="optional: units to check against the contract")
    alias: VersionName = Field(default="champion", description="alias or version number")
    coverage: Coverage | None = Field(
        default=None, description="of class sets and conformal intervals, above 0 and below 1; null: the version's own"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.samples is None) == (self.sample is None):
            raise ValueError("give either samples, a list, or sample, a single one")
        return self

    @property
    def all_samples(self) -> tuple[dict[str, float], ...]:
        """The samples, however they were given."""
        return self.samples if self.samples is not None else (self.sample or {},)


class DiagnoseResponse(Contract):
    """Diagnoses in the order of the samples."""

    model: str
    model_version: str
    run_id: str
    diagnoses: tuple[Diagnosis, ...]
    calibration: CalibrationFacts | None = None
