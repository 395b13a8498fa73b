"""Administration of plans."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.openapi.models import Example
from pydantic import Field, WithJsonSchema

from api.plans import service
from api.web.auth import Administrator, Engineer, Operator
from api.web.dependencies import BackendDep, DryRun, OptionalReason, PlainJSON, ReasonDep
from api.web.etags import UNCHANGED, IfMatch, IfNoneMatch, etag_of, expecting, has_already
from api.web.paging import Cursor, WholeList, page_of
from services.contracts.base import Contract, Moment
from services.contracts.errors import InvalidInputError
from services.contracts.history.records import PlanRecord, PlanVersion
from services.contracts.history.run import OrderedRun, Run
from services.contracts.plans.overrides import FOR_ONE_RUN
from services.contracts.plans.plan import Plan
from services.round_store.database.queries import MAX_PAGE

router = APIRouter(prefix="/v1/admin/plans", tags=["administration: plans"], default_response_class=PlainJSON)
ROUTERS = (router,)

EXAMPLES = {
    "nightly": Example(
        summary="every night at two, with all sites of the asset type",
        value={
            "name": "pumps", "asset_type": "triplex-pump", "cron": "0 2 * * *", "timezone": "Europe/Berlin",
            "min_sites": 3, "spec": {"radius": {"rule": "samples", "value": 10}, "label_flip_cost": 1.0},
            "gates": {"max_gap": 1e-3, "min_f1": 0.85},
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
            "reveal": "each site", "mixture": {"norm": "l2", "radius": 0.2},
            "gates": {"max_gap": 1e-3, "max_mae": 0.2, "max_site_mae": 0.3, "min_coverage": 0.9},
        },
    ),
}


class Plans(Contract):
    """Plans by name."""

    plans: tuple[PlanRecord, ...]


class PlanVersions(Contract):
    """Versions of a plan, the first one first."""

    versions: tuple[PlanVersion, ...]


@router.get("")
def list_plans(
    _: Engineer,
    backend: BackendDep,
    request: Request,
    response: Response,
    archived: Annotated[bool, Query(description="the archived ones too")] = False,
    asset_type: str | None = None,
    paused: bool | None = None,
    limit: WholeList = MAX_PAGE,
    cursor: Cursor = None,
) -> Plans:
    """Plans by name; of one asset type, paused or not, where asked."""
    found = service.listed(backend, archived, asset_type, paused)
    return Plans(plans=page_of(found, lambda each: (each.plan.name,), (str,), request, response, limit, cursor))


@router.get("/{name}", response_model=PlanRecord, responses=UNCHANGED)
def get_plan(
    name: str, _: Engineer, backend: BackendDep, response: Response, if_none_match: IfNoneMatch = None
) -> PlanRecord | Response:
    """One plan, and whether it is paused. The header `ETag` is what a change of it must send in `If-Match`.

    Sent back in `If-None-Match`, it is answered with 304 and nothing more, as long as the plan is the same.
    """
    found = backend.store.plans.get(name)
    tag = etag_of(found)
    if has_already(if_none_match, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return found


@router.get("/{name}/versions")
def list_plan_versions(
    name: str, _: Engineer, backend: BackendDep, request: Request, response: Response, actor: str | None = None,
    since: Moment | None = None, until: Moment | None = None, limit: WholeList = MAX_PAGE, cursor: Cursor = None,
) -> PlanVersions:
    """Every version of a plan, with who gave it and why; of one actor or time where asked."""
    found = service.given_by(backend.store.plans.versions(name), actor, since, until)
    return PlanVersions(
        versions=page_of(found, lambda each: (each.version,), (int,), request, response, limit, cursor)
    )


@router.put("/{name}")
def put_plan(
    name: str,
    body: Plan,
    caller: Administrator,
    backend: BackendDep,
    response: Response,
    if_match: IfMatch = None,
    reason: Annotated[str, Query(max_length=500, description="why; it goes into the audit trail")] = "",
    dry_run: DryRun = False,
) -> PlanRecord:
    """Give a plan another content, checked as a new one is.

    Runs keep the plan that they began with. The asset type and the task stay once there are versions of the model, or
    while a run is unfinished. Needs the header `If-Match`: 428 without, 412 where somebody was quicker. With `dry_run`
    the answer is what it would be, and has no `ETag`.
    """
    if body.name != name:
        raise InvalidInputError(f"the address names the plan {name[:60]}, the body {body.name}")
    changed = service.update(backend, caller.actor, body, reason, expecting(if_match), dry_run=dry_run)
    if not dry_run:
        response.headers["ETag"] = etag_of(changed)
    return changed


@router.delete("/{name}")
def delete_plan(
    name: str, caller: Administrator, backend: BackendDep, reason: ReasonDep, if_match: IfMatch = None
) -> PlanRecord:
    """Forget a plan that was never used; where runs or versions refer to it (409), archive it.

    With the header `If-Match` only in that state: 412 where somebody has changed it.
    """
    return service.delete(backend, caller.actor, name, reason, None if if_match is None else expecting(if_match))


@router.post("/{name}/archive")
def archive_plan(name: str, caller: Administrator, backend: BackendDep, reason: ReasonDep) -> PlanRecord:
    """Put a plan away: nothing starts it, and lists leave it out; its model and its runs stay."""
    return service.set_archived(backend, caller.actor, name, True, reason)


@router.post("/{name}/restore")
def restore_plan(name: str, caller: Administrator, backend: BackendDep, reason: ReasonDep) -> PlanRecord:
    """Bring an archived plan back."""
    return service.set_archived(backend, caller.actor, name, False, reason)


@router.post("", status_code=201, responses={200: {"model": PlanRecord, "description": "what it would be (`dry_run`)"}})
def create_plan(
    body: Annotated[Plan, Body(openapi_examples=EXAMPLES)],
    caller: Administrator,
    backend: BackendDep,
    response: Response,
    paused: Annotated[bool, Query(description="do not start it by its schedule yet")] = False,
    dry_run: DryRun = False,
) -> PlanRecord:
    """Store a new plan, after checking its asset type, sites, method, parameters and schedule.

    `notices` are what it says that is allowed and seldom meant, such as a gate that may never hold.
    """
    response.status_code = 200 if dry_run else 201
    return service.create(backend, caller.actor, body, paused=paused, dry_run=dry_run)


@router.post("/{name}/pause")
def pause_plan(name: str, caller: Operator, backend: BackendDep, reason: ReasonDep) -> PlanRecord:
    """Stop starting a plan by its schedule."""
    return service.set_paused(backend, caller.actor, name, True, reason)


@router.post("/{name}/resume")
def resume_plan(name: str, caller: Operator, backend: BackendDep, reason: ReasonDep) -> PlanRecord:
    """Start a plan by its schedule again."""
    return service.set_paused(backend, caller.actor, name, False, reason)


OfOneRun = Annotated[
    Any, WithJsonSchema({"anyOf": [{"type": kind} for kind in ("boolean", "integer", "number", "string")]})
]
"""A value of one run. Which fields have one is said first, so that no field of the plan is told what kind it wants."""


class Order(OptionalReason):
    """Why a run is asked for, and what it has of its own; both may be left out."""

    overrides: dict[str, OfOneRun] = Field(
        default_factory=dict, description=f"fields of the plan that this run has of its own: {', '.join(FOR_ONE_RUN)}"
    )


@router.post("/{name}/trigger", status_code=202)
def trigger_plan(name: str, caller: Operator, backend: BackendDep, body: Order | None = None) -> OrderedRun:
    """Ask for a run now; it is pending until the flows process starts it. One run of a plan at a time.

    `notices` are what to look at in the plan, such as a gate that holds only where every plant tells its own scores.
    """
    order = body or Order()
    return service.trigger(backend, caller.actor, name, order.reason, order.overrides)


@router.post("/{name}/tune", status_code=202)
def tune_plan(name: str, caller: Operator, backend: BackendDep, reason: ReasonDep) -> Run:
    """Ask for a tuning of a plan's terms and nothing else: no training, no version, nothing in the registry.

    The run ends with what was tried, scored and chosen in `plan.tuned`, and the plan's next training takes the choice
    while the plan still says the same. 422 (`no_tuning`) where the plan has no tuning. One run of a plan at a time.
    """
    return service.tune(backend, caller.actor, name, reason)
