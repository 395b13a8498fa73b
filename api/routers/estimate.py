"""Estimation of a target from measurements."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body
from fastapi.openapi.models import Example

from api.auth import Diagnoser
from api.dependencies import Office
from api.schemas import FEATURES_EXAMPLE
from services.contracts.estimate import EstimateRequest, EstimateResponse

router = APIRouter(prefix="/v1/models", tags=["diagnosis"])

EXAMPLES = {
    "one": Example(summary="one measurement, an interval of confidence 0.9", value={"sample": FEATURES_EXAMPLE}),
    "many": Example(
        summary="two measurements, units checked, a wider interval",
        value={
            "samples": [FEATURES_EXAMPLE, FEATURES_EXAMPLE | {"flow_mean": 40.2, "power_10_20_hz": -24.5}],
            "units": {"flow_mean": "L/min"},
            "confidence": 0.95,
        },
    ),
}


@router.post("/{name}/estimate")
def estimate(
    name: str, body: Annotated[EstimateRequest, Body(openapi_examples=EXAMPLES)], _: Diagnoser, backend: Office
) -> EstimateResponse:
    """Estimate the target of a model, such as the area of a leak, for one or many measurements.

    Each answer has the value in the target's unit, an interval that the certified worst-case risk proves, and the
    sensors that push the value most. The interval holds for measurements drawn from the sites' certified mixture, all
    together, and is conservative: it assumes nothing of the errors. Nothing of a measurement is kept. A model of
    classes answers 409: ask it for a diagnosis.
    """
    estimator = backend.predictors.estimator(name, body.alias)
    version, target = estimator.version, estimator.target
    return EstimateResponse(
        model=name, model_version=version.version, run_id=version.run_id, target=target.name, unit=target.unit,
        estimates=estimator.estimate(body.all_samples, body.units, body.confidence), held_out_coverage=version.coverage,
    )  # fmt: skip
