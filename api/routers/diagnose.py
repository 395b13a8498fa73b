"""Diagnosis of measurements."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body
from fastapi.openapi.models import Example

from api.auth import Diagnoser
from api.dependencies import Office
from api.schemas import FEATURES_EXAMPLE
from services.contracts.diagnosis import DiagnoseRequest, DiagnoseResponse

router = APIRouter(prefix="/v1/models", tags=["diagnosis"])

EXAMPLES = {
    "one": Example(summary="one measurement", value={"sample": FEATURES_EXAMPLE}),
    "many": Example(
        summary="two measurements, units checked, by the challenger's version",
        value={
            "samples": [FEATURES_EXAMPLE, FEATURES_EXAMPLE | {"flow_mean": 40.2, "power_10_20_hz": -24.5}],
            "units": {"flow_mean": "L/min"},
            "alias": "challenger",
        },
    ),
}


@router.post("/{name}/diagnose")
def diagnose(
    name: str, body: Annotated[DiagnoseRequest, Body(openapi_examples=EXAMPLES)], _: Diagnoser, backend: Office
) -> DiagnoseResponse:
    """Diagnose one or many measurements of a machine.

    Each answer has the fault class with its severity, a score for each class, the robustness radius (how far the scaled
    features would have to move before the class changes), and the features that push the decision most. Nothing of a
    measurement is kept. When one sample does not fit the feature contract, none is diagnosed. A model of a target
    answers 409: ask it for an estimate.
    """
    predictor = backend.predictors.diagnoser(name, body.alias)
    version = predictor.version
    diagnoses = predictor.diagnose(body.all_samples, body.units)
    return DiagnoseResponse(model=name, model_version=version.version, run_id=version.run_id, diagnoses=diagnoses)
