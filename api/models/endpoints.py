"""Models: their versions and reports, what they diagnose and estimate, and which version is champion."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body
from fastapi.responses import HTMLResponse, Response

from api.models import examples, queries, service
from api.models.schemas import ChampionChange, ModelDetail, Models, Promotion, Rollback, VersionDetail
from api.web.auth import Diagnoser, Operator, Reader
from api.web.dependencies import BackendDep, PlainJSON
from services.contracts.diagnosis import DiagnoseRequest, DiagnoseResponse
from services.contracts.estimate import EstimateRequest, EstimateResponse
from services.contracts.fairness import FairnessReport
from services.contracts.report import ModelReport
from services.reporting.fairness_page import fairness_page
from services.reporting.lorenz_chart import lorenz_chart
from services.reporting.report_page import report_page

diagnosis = APIRouter(prefix="/v1/models", tags=["diagnosis"])
router = APIRouter(prefix="/v1/models", tags=["models"], default_response_class=PlainJSON)
administration = APIRouter(
    prefix="/v1/admin/models", tags=["administration: models"], default_response_class=PlainJSON
)
ROUTERS = (diagnosis, router, administration)
VERSION = "/{name}/versions/{version}"


@diagnosis.post("/{name}/diagnose")
def diagnose(
    name: str,
    body: Annotated[DiagnoseRequest, Body(openapi_examples=examples.DIAGNOSE)],
    _: Diagnoser,
    backend: BackendDep,
) -> DiagnoseResponse:
    """Diagnose one or many measurements of a machine.

    Each answer has the fault class with its severity, a score for each class, the robustness radius (how far the
    scaled features would have to move before the class changes, inside the sensor ranges or not), and the features
    that push the decision most. Nothing of a measurement is kept. When one sample does not fit the feature contract,
    none is diagnosed. A model of a target answers 409: ask it for an estimate.
    """
    predictor = backend.predictors.diagnoser(name, body.alias)
    version = predictor.version
    diagnoses = predictor.diagnose(body.all_samples, body.units)
    return DiagnoseResponse(model=name, model_version=version.version, run_id=version.run_id, diagnoses=diagnoses)


@diagnosis.post("/{name}/estimate")
def estimate(
    name: str,
    body: Annotated[EstimateRequest, Body(openapi_examples=examples.ESTIMATE)],
    _: Diagnoser,
    backend: BackendDep,
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
    )


@router.get("")
def list_models(_: Reader, backend: BackendDep) -> Models:
    """Models, with the versions that their aliases stand for."""
    return Models(models=backend.registry.models())


@router.get("/{name}")
def get_model(name: str, _: Reader, backend: BackendDep) -> ModelDetail:
    """One model with its versions, the newest first."""
    return queries.model_detail(backend, name)


@router.get(VERSION)
def get_version(name: str, version: str, caller: Reader, backend: BackendDep) -> VersionDetail:
    """One version, by number or alias, with its certificates, sites and gates; viewers see sites' pseudonyms."""
    return backend.named(name, queries.version_detail(backend, name, version), real=caller.sees_site_names)


@router.get(f"{VERSION}/report")
def get_report(name: str, version: str, caller: Reader, backend: BackendDep) -> ModelReport:
    """Report of a version: bounds by round, each site's part, missed rounds, gates; viewers see pseudonyms."""
    return backend.named(name, queries.report(backend, name, version), real=caller.sees_site_names)


@router.get(f"{VERSION}/report.html", response_class=HTMLResponse)
def get_report_page(name: str, version: str, caller: Reader, backend: BackendDep) -> HTMLResponse:
    """Show the report as a page that needs nothing else."""
    return HTMLResponse(report_page(get_report(name, version, caller, backend)))


@router.get(f"{VERSION}/fairness")
def get_fairness(name: str, version: str, caller: Reader, backend: BackendDep) -> FairnessReport:
    """Fairness of a version, by number or alias: each site's scalars, indices, Lorenz curve, and the champion's.

    Everybody but administrators sees pseudonyms of the sites.
    """
    return backend.named(name, queries.fairness(backend, name, version), real=caller.is_administrator)


@router.get(f"{VERSION}/fairness.svg", response_class=Response)
def get_fairness_svg(name: str, version: str, caller: Reader, backend: BackendDep) -> Response:
    """Lorenz curve of the sites' losses as an SVG."""
    return Response(lorenz_chart(get_fairness(name, version, caller, backend), "svg"), media_type="image/svg+xml")


@router.get(f"{VERSION}/fairness.png", response_class=Response)
def get_fairness_png(name: str, version: str, caller: Reader, backend: BackendDep) -> Response:
    """Lorenz curve of the sites' losses as a PNG."""
    return Response(lorenz_chart(get_fairness(name, version, caller, backend), "png"), media_type="image/png")


@router.get(f"{VERSION}/fairness.html", response_class=HTMLResponse)
def get_fairness_page(name: str, version: str, caller: Reader, backend: BackendDep) -> HTMLResponse:
    """Show the report as a page that needs nothing else."""
    return HTMLResponse(fairness_page(get_fairness(name, version, caller, backend)))


@administration.post("/{name}/promote")
def promote_model(name: str, body: Promotion, caller: Operator, backend: BackendDep) -> ChampionChange:
    """Make a version champion, if the gates of its plan hold or are set aside; a reason is needed."""
    return service.promote(backend, caller.actor, name, body.version, body.reason, ignore_gates=body.ignore_gates)


@administration.post("/{name}/rollback")
def roll_back_model(name: str, body: Rollback, caller: Operator, backend: BackendDep) -> ChampionChange:
    """Make the champion before this one champion again; a reason is needed."""
    return service.rollback(backend, caller.actor, name, body.reason)
