"""Models, their versions and reports."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api.auth import Caller, Reader
from api.dependencies import Office, PlainJSON
from api.reading import known_sites, model_detail, report_of, version_detail
from api.schemas import ModelDetail, Models, VersionDetail
from api.wiring import Backend
from services.contracts.report import ModelReport
from services.reporting.report_page import report_page

router = APIRouter(prefix="/v1/models", tags=["models"], default_response_class=PlainJSON)


@router.get("")
def list_models(_: Reader, backend: Office) -> Models:
    """Models, with the versions that their aliases stand for."""
    return Models(models=backend.registry.models())


@router.get("/{name}")
def get_model(name: str, _: Reader, backend: Office) -> ModelDetail:
    """One model with its versions, the newest first."""
    return model_detail(backend, name)


@router.get("/{name}/versions/{version}")
def get_version(name: str, version: str, caller: Reader, backend: Office) -> VersionDetail:
    """One version, by number or alias, with its certificates, sites and gates; viewers see sites' pseudonyms."""
    detail = version_detail(backend, name, version)
    return detail if caller.sees_site_names else backend.pseudonyms.applied(name, detail, known_sites(backend))


@router.get("/{name}/versions/{version}/report")
def get_report(name: str, version: str, caller: Reader, backend: Office) -> ModelReport:
    """Report of a version: bounds by round, each site's part, missed rounds, gates; viewers see pseudonyms."""
    return _report(name, version, caller, backend)


@router.get("/{name}/versions/{version}/report.html", response_class=HTMLResponse)
def get_report_page(name: str, version: str, caller: Reader, backend: Office) -> HTMLResponse:
    """Show the report as a page that needs nothing else."""
    return HTMLResponse(report_page(_report(name, version, caller, backend)))


def _report(name: str, version: str, caller: Caller, backend: Backend) -> ModelReport:
    report = report_of(backend, backend.registry.get(name, version))
    return report if caller.sees_site_names else backend.pseudonyms.applied(name, report, known_sites(backend))
