"""Metrics for Prometheus, and the state of the service for administrators."""

from __future__ import annotations

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from api.system import state
from api.system.state import SystemState
from api.web.auth import METRICS, Administrator, Reader
from api.web.dependencies import BackendDep, PlainJSON
from api.web.metering import MetersDep

metrics = APIRouter(tags=["health"])
router = APIRouter(prefix="/v1/system", tags=["administration: system"], default_response_class=PlainJSON)
ROUTERS = (metrics, router)


@metrics.get(METRICS, response_class=Response)
def scrape(_: Reader, meters: MetersDep) -> Response:
    """Metrics in Prometheus's text form; sites under pseudonyms that are the metrics' own. Needs a viewer's token."""
    return Response(generate_latest(meters.registry), media_type=CONTENT_TYPE_LATEST)


@router.get("/state")
def system_state(_: Administrator, backend: BackendDep) -> SystemState:
    """What runs here: version, schema, store, room on the disk, last backup, unfinished runs, connected sites."""
    return state.system_state(backend)
