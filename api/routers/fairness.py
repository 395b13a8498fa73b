"""How unequally a version serves the sites: as JSON, as a picture, as a page."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from api.auth import Caller, Reader
from api.dependencies import Office, PlainJSON
from api.reading import fairness_of, known_sites
from api.wiring import Backend
from services.contracts.fairness import FairnessReport
from services.reporting.fairness_page import fairness_page
from services.reporting.lorenz_chart import lorenz_chart

router = APIRouter(prefix="/v1/models", tags=["models"], default_response_class=PlainJSON)


@router.get("/{name}/versions/{version}/fairness")
def get_fairness(name: str, version: str, caller: Reader, backend: Office) -> FairnessReport:
    """Fairness of a version, by number or alias: each site's scalars, indices, Lorenz curve, and the champion's.

    Everybody but administrators sees pseudonyms of the sites.
    """
    return _report(name, version, caller, backend)


@router.get("/{name}/versions/{version}/fairness.svg", response_class=Response)
def get_fairness_svg(name: str, version: str, caller: Reader, backend: Office) -> Response:
    """Lorenz curve of the sites' losses as an SVG."""
    return Response(lorenz_chart(_report(name, version, caller, backend), "svg"), media_type="image/svg+xml")


@router.get("/{name}/versions/{version}/fairness.png", response_class=Response)
def get_fairness_png(name: str, version: str, caller: Reader, backend: Office) -> Response:
    """Lorenz curve of the sites' losses as a PNG."""
    return Response(lorenz_chart(_report(name, version, caller, backend), "png"), media_type="image/png")


@router.get("/{name}/versions/{version}/fairness.html", response_class=HTMLResponse)
def get_fairness_page(name: str, version: str, caller: Reader, backend: Office) -> HTMLResponse:
    """Show the report as a page that needs nothing else."""
    return HTMLResponse(fairness_page(_report(name, version, caller, backend)))


def _report(name: str, version: str, caller: Caller, backend: Backend) -> FairnessReport:
    report = fairness_of(backend, backend.registry.get(name, version))
    return report if caller.is_administrator else backend.pseudonyms.applied(name, report, known_sites(backend))
