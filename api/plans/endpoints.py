"""Administration of plans."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query
from fastapi.openapi.models import Example

from api.plans import service
from api.web.auth import Administrator, Operator
from api.web.dependencies import BackendDep, PlainJSON, ReasonDep
from services.contracts.base import Contract
from services.contracts.plan import Plan
from services.contracts.records import PlanRecord
from services.contracts.run import Run

router = APIRouter(prefix="/v1/admin/plans", tags=["administration: plans"], default_response_class=PlainJSON)
ROUTERS = (router,)

EXAMPLES = {
    "nightly": Example(
        summary="every night at two, with all sites of the asset type",
        value={
            "name": "pumps", "asset_type": "triplex-pump", "cron": "0 2 * * *", "timezone": "Europe/Berlin",
            "min_sites": 3, "spec": {"radius": {"rule": "samples", "value": 10}, "label_flip_cost": 1.0},
            "gates": {"max_gap": 1e-3, "min_site_f1": 0.75},
        },
    ),
    "lifted": Example(
        summary="a bent boundary, and a radius for a wanted confidence, estimated in the plants",
        value={
            "name": "pumps-lifted", "asset_type": "triplex-pump", "method": "level-bundle", "gap": 1e-3,
            "spec": {
                "radius": {"rule": "confidence", "confidence": 0.95}, "transport_norm": "l2",
                "lift": {"components": 64, "bandwidth": 0.7, "seed": 1},
            },
        },
    ),
    "severity": Example(
        summary="how large a leak is, robust also against the mix of the plants",
        value={
            "name": "leak-area", "asset_type": "triplex-pump-severity", "min_sites": 3,
            "spec": {
                "loss": {"name": "pinball", "quantile": 0.5}, "radius": {"rule": "samples", "value": 10},
                "label_flip_cost": 1.0, "support": "sensor_ranges", "transport_norm": "l1",
            },
            "mixture": {"norm": "l2", "radius": 0.2},
            "gates": {"max_gap": 1e-3, "max_mae": 0.2, "max_site_mae": 0.3, "min_coverage": 0.9},
        },
    ),
}


class Plans(Contract):
    """Plans by name."""

    plans: tuple[PlanRecord, ...]


@router.get("")
def list_plans(_: Operator, backend: BackendDep) -> Plans:
    """All plans by name."""
    return Plans(plans=tuple(backend.store.plans.list_plans()))


@router.get("/{name}")
def get_plan(name: str, _: Operator, backend: BackendDep) -> PlanRecord:
    """One plan, and whether it is paused."""
    return backend.store.plans.get(name)


@router.post("", status_code=201)
def create_plan(
    body: Annotated[Plan, Body(openapi_examples=EXAMPLES)],
    caller: Administrator,
    backend: BackendDep,
    paused: Annotated[bool, Query(description="do not start it by its schedule yet")] = False,
) -> PlanRecord:
    """Store a new plan, after checking its asset type, sites, method, parameters and schedule."""
    return service.create(backend, caller.actor, body, paused=paused)


@router.post("/{name}/pause")
def pause_plan(name: str, caller: Operator, backend: BackendDep, reason: ReasonDep) -> PlanRecord:
    """Stop starting a plan by its schedule."""
    return service.set_paused(backend, caller.actor, name, True, reason)


@router.post("/{name}/resume")
def resume_plan(name: str, caller: Operator, backend: BackendDep, reason: ReasonDep) -> PlanRecord:
    """Start a plan by its schedule again."""
    return service.set_paused(backend, caller.actor, name, False, reason)


@router.post("/{name}/trigger", status_code=202)
def trigger_plan(name: str, caller: Operator, backend: BackendDep, reason: ReasonDep) -> Run:
    """Ask for a run now; it is pending until the flows process starts it. One run of a plan at a time."""
    return service.trigger(backend, caller.actor, name, reason)
