"""Models: their versions and reports, what they diagnose and estimate, and which version is champion."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query, Request
from fastapi.responses import HTMLResponse, Response

from api.models import examples, exports, queries, service, unlearning
from api.models.quick import PredictionRoute
from api.models.schemas import (
    ChampionChange,
    ModelDetail,
    Models,
    Promotion,
    Rollback,
    Unlearned,
    Unlearning,
    VersionDetail,
)
from api.web.auth import Administrator, Diagnoser, Engineer, Operator, Reader
from api.web.dependencies import BackendDep, PlainJSON
from api.web.paging import Cursor, WholeList, page_of
from services.contracts.errors import NotFoundError
from services.contracts.evaluation.diagnosis import DiagnoseRequest, DiagnoseResponse
from services.contracts.evaluation.estimate import EstimateRequest, EstimateResponse
from services.contracts.evaluation.fairness import FairnessReport
from services.contracts.versions.report import ModelReport
from services.reporting.fairness_page import fairness_page
from services.reporting.lorenz_chart import lorenz_chart
from services.reporting.report_page import report_page
from services.round_store.database.queries import MAX_PAGE
from services.verification.bundle import VersionFiles, packed

diagnosis = APIRouter(prefix="/v1/models", tags=["diagnosis"], route_class=PredictionRoute)
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
    that push the decision most. `class_set` holds the true class with probability `coverage` at least, over all
    measurements like the plants' held-out ones; `probabilities` are calibrated on these. It abstains where every class
    is possible, or the measurement is unlike the held-out ones, and says why. Nothing of a measurement is kept. When
    one sample does not fit the feature contract, none is diagnosed. A model of a target answers 409: ask it for an
    estimate. For more samples than one request holds send `application/x-ndjson`, a sample a line: the answers come
    a line each while you send, and the last one says `end`; `alias` and `coverage` then stand in the query.
    """
    predictor = backend.predictors.diagnoser(name, body.alias)
    version = predictor.version
    diagnoses = predictor.diagnose(body.all_samples, body.units, body.coverage)
    return DiagnoseResponse(
        model=name, model_version=version.version, run_id=version.run_id, diagnoses=diagnoses,
        calibration=version.calibration_facts,
    )


@diagnosis.post("/{name}/estimate")
def estimate(
    name: str,
    body: Annotated[EstimateRequest, Body(openapi_examples=examples.ESTIMATE)],
    _: Diagnoser,
    backend: BackendDep,
) -> EstimateResponse:
    """Estimate the target of a model, such as the area of a leak, for one or many measurements.

    Each answer has the value in the target's unit, an interval that the certified worst-case risk proves, the conformal
    interval from the plants' held-out errors, and the sensors that push the value most. The first holds for
    measurements drawn from the sites' certified mixture, all together, and is conservative: it assumes nothing of the
    errors; the second for measurements like the held-out ones. All are cut to the target's range. Nothing of a
    measurement is kept. A model of classes answers 409: ask it for a diagnosis.
    """
    estimator = backend.predictors.estimator(name, body.alias)
    version, target = estimator.version, estimator.target
    estimates = estimator.estimate(body.all_samples, body.units, body.confidence, body.coverage)
    return EstimateResponse(
        model=name, model_version=version.version, run_id=version.run_id, target=target.name, unit=target.unit,
        estimates=estimates, held_out_coverage=version.coverage, calibration=version.calibration_facts,
    )


@router.get("")
def list_models(
    _: Reader,
    backend: BackendDep,
    request: Request,
    response: Response,
    asset_type: str | None = None,
    prefix: Annotated[str, Query(description="what their names begin with")] = "",
    champion: Annotated[bool | None, Query(description="whether they have a champion; null: all")] = None,
    limit: WholeList = MAX_PAGE,
    cursor: Cursor = None,
) -> Models:
    """Models by name, with the versions that their aliases stand for; of one asset type or prefix where asked."""
    found = queries.model_list(backend, asset_type, prefix, champion)
    return Models(models=page_of(found, lambda each: (each.name,), (str,), request, response, limit, cursor))


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


@router.get(f"{VERSION}/certificate", response_class=Response)
def get_certificate(name: str, version: str, caller: Engineer, backend: BackendDep) -> Response:
    """Certificate file of a version (npz), whose SHA-256 the signed version names; it names the sites.

    A version without one (its method's bounds are of something else) answers 404. The weights are in it, for nobody
    proves bounds of a model that he does not have: that it was given out is noted in the audit trail.
    """
    files = queries.version_files(backend, name, version)
    if files.certificate is None:
        raise NotFoundError(f"version {version[:40]} of model {name} carries no certificate file")
    return _certificate(backend, caller, name, files, files.certificate, "certificate.npz", "application/octet-stream")


@router.get(f"{VERSION}/certificate.zip", response_class=Response)
def get_certificate_bundle(name: str, version: str, caller: Engineer, backend: BackendDep) -> Response:
    """All that `ballast-site verify` and `ballast verify --file` need, as one zip file.

    The signed version, its certificate file, and the line of the OEM's keys: give it to a plant as it is. The weights
    are in it; it is noted in the audit trail.
    """
    files = queries.version_files(backend, name, version)
    return _certificate(backend, caller, name, files, packed(files), f"{name}.zip", "application/zip")


@router.get(f"{VERSION}/export", response_class=Response)
def export_version(
    name: str, version: str, caller: Operator, backend: BackendDep, format: exports.Format,
    precision: exports.Precision = "double",
) -> Response:
    """Export a version to run elsewhere: an ONNX model, or a C99 header with its test vectors.

    Raw sensor values in, scores and class or the estimate out. It clips where the contract would refuse. With
    `precision=float` in numbers of 32 bits. For operators: where it runs, no alias, gate or refusal of ours reaches
    it. The export is noted in the audit trail, for the weights leave with it.
    """
    made = exports.export(backend, caller.actor, name, version, format, precision)
    return _file(made.data, exports.MEDIA_TYPES[format], made.name)


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


def _certificate(
    backend: BackendDep, caller: Engineer, name: str, files: VersionFiles, data: bytes, file: str, media_type: str
) -> Response:
    exports.note_certificate(backend, caller.actor, name, files.document["version"], file, data)
    return _file(data, media_type, file)


def _file(data: bytes, media_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type=media_type, headers=headers)


@administration.post("/{name}/promote")
def promote_model(name: str, body: Promotion, caller: Operator, backend: BackendDep) -> ChampionChange:
    """Make a version champion, if the gates of its plan hold or are set aside; a reason is needed."""
    return service.promote(backend, caller.actor, name, body.version, body.reason, ignore_gates=body.ignore_gates)


@administration.post("/{name}/unlearn", status_code=202)
def unlearn_plant(name: str, body: Unlearning, caller: Administrator, backend: BackendDep) -> Unlearned:
    """Train a version that never had a plant, and forget the plant; its enrolment ends, a reason is needed.

    The run takes a few rounds: the cuts of the other plants still hold. When its version is champion (`purge` "now": as
    soon as it is there), the versions that had the plant are deleted with their certificates, reports and MLflow runs,
    and what the store holds of it is deleted or bears a pseudonym. The audit trail keeps its entries.
    """
    return unlearning.unlearn(backend, caller.actor, name, body)


@administration.post("/{name}/rollback")
def roll_back_model(name: str, body: Rollback, caller: Operator, backend: BackendDep) -> ChampionChange:
    """Make the champion before this one champion again; a reason is needed."""
    return service.rollback(backend, caller.actor, name, body.reason)
