"""What the API takes and answers when a target is estimated."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from services.contracts.base import Contract
from services.contracts.evaluation.calibration import CalibrationFacts
from services.contracts.evaluation.diagnosis import ContributingSensor, DiagnoseRequest
from services.contracts.evaluation.scores import COVERAGE_CONFIDENCE

GUARANTEE: Final = (
    "For measurements drawn from the sites' certified mixture the interval holds the true value with at least the "
    "stated probability: it follows from the certified worst-case risk by Markov's inequality. It speaks of all "
    "such measurements together, not of one, and is conservative. The conformal interval follows from counts of the "
    "plants' held-out measurements: for measurements like these it holds the true value with at least its coverage, "
    "over the draw of these and of the new one. Value and intervals are cut to the target's range."
)
Confidence = Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)]
"""A number, as readings are: a text is refused, never guessed at."""


class Interval(Contract):
    """Where the true value lies, in the target's unit; ``kind`` says what proves it.

    ``worst_case_markov``: the certified worst-case risk. ``conformal``: held-out measurements (``models.conformal``).
    """

    low: float
    high: float
    confidence: float
    kind: Literal["worst_case_markov", "conformal"] = "worst_case_markov"


class Estimate(Contract):
    """Estimate of the target for one measurement.

    ``contributing_sensors`` add up, in the target's unit, to the value minus that of a sample with every feature in the
    middle of its sensor range (with a lift other than splines: by the slope at the sample), before it is cut to the
    target's range. ``conformal`` is null for a version without a calibration. ``clipped`` and ``imputed`` as in a
    diagnosis. With ``abstained`` true the value is not to be trusted, and ``reason`` says why.
    """

    value: float
    unit: str
    interval: Interval
    conformal: Interval | None = None
    contributing_sensors: tuple[ContributingSensor, ...]
    clipped: tuple[str, ...] = ()
    imputed: tuple[str, ...] = ()
    abstained: bool = False
    reason: str = ""


class EstimateRequest(DiagnoseRequest):
    """Samples whose target is estimated, and the confidence of the interval around each estimate."""

    confidence: Confidence = Field(default=COVERAGE_CONFIDENCE, description="of the interval, above 0 and below 1")


class EstimateResponse(Contract):
    """Estimates in the order of the samples.

    ``held_out_coverage`` is the share of the sites' held-out measurements that lay in their interval of confidence
    ``held_out_confidence``; null where no site counted.
    """

    model: str
    model_version: str
    run_id: str
    target: str
    unit: str
    estimates: tuple[Estimate, ...]
    guarantee: str = GUARANTEE
    held_out_confidence: float = COVERAGE_CONFIDENCE
    held_out_coverage: float | None = None
    calibration: CalibrationFacts | None = None
