"""Plans: their next runs, changes that are checked before they are made, and orders."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from api.backend.wiring import Backend
from api.console.forms import Posted, reason_of
from api.console.rendering import HEADERS, page
from api.console.views.plans import Draft, draft, dry_run, next_runs, read_plan
from api.console.views.run_terms import given_terms, overrides_of, run_terms
from api.plans import service
from api.web.auth import CONSOLE, Administrator, Engineer, Operator
from api.web.dependencies import BackendDep
from api.web.etags import etag_of, expecting
from services.contracts.errors import BallastError, InvalidInputError
from services.contracts.toml_text import to_toml

router = APIRouter(prefix=CONSOLE, include_in_schema=False)
EXAMPLE = """name = "my-plan"
asset_type = "{}"
cron = "0 3 * * 1"
min_sites = 3

[gates]
max_gap = 1e-3
"""


def _example(backend: Backend) -> str:
    """A first plan, for a kind of machine that there is."""
    kinds = sorted({record.asset_type.name for record in backend.store.asset_types.list_asset_types()})
    return EXAMPLE.format(kinds[0] if kinds else "triplex-pump")


@router.get("/plans")
def plans_page(request: Request, _: Engineer, backend: BackendDep) -> HTMLResponse:
    """List the plans with their next and newest runs."""
    now = datetime.now(UTC)
    records = backend.store.plans.list_plans(archived=True)
    newest = {run.plan.name: run for run in backend.store.overview.newest_runs()}
    coming = {record.plan.name: next_runs(record, now, 1) for record in records}
    return page(
        request, "plans.html", records=records, newest=newest, coming=coming, example=_example(backend), problem="",
    )


@router.post("/plans")
def create_plan(request: Request, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Store a new plan, after all that is checked of one."""
    text = fields.get("text", "")
    try:
        made = service.create(backend, caller.actor, read_plan(text), paused=fields.get("paused") == "yes")
    except BallastError as error:
        return page(
            request, "plans.html", 422, records=backend.store.plans.list_plans(archived=True), newest={}, coming={},
            example=text, problem=str(error),
        )
    return RedirectResponse(f"{CONSOLE}/plans/{made.plan.name}", 303, headers=HEADERS)


@router.get("/plans/{name}")
def one_plan_page(request: Request, name: str, _: Engineer, backend: BackendDep) -> HTMLResponse:
    """Show a plan, when it runs next, what a run now would be, and its versions."""
    return _plan_page(request, backend, name)


def _plan_page(
    request: Request, backend: BackendDep, name: str, status: int = 200, drafted: Draft | None = None,
    asked: Mapping[str, str] | None = None, not_triggered: str = "",
) -> HTMLResponse:
    now = datetime.now(UTC)
    record, runs = backend.store.plans.get(name), backend.store.runs.list_runs(plan=name, limit=10)
    return page(
        request, "plan.html", status, record=record, plan=record.plan, etag=etag_of(record),
        text=drafted.text if drafted else to_toml(record.plan), draft=drafted, coming=next_runs(record, now),
        dry=dry_run(backend, record.plan, runs, now), runs=runs,
        versions=backend.store.plans.versions(name)[::-1], not_triggered=not_triggered,
        terms=run_terms(record.plan, asked or {}), stays_challenger="auto_promote" in (asked or {}),
    )


@router.post("/plans/{name}/check")
def check_plan(request: Request, name: str, fields: Posted, _: Administrator, backend: BackendDep) -> HTMLResponse:
    """Say what a changed plan would change, or why it does not fit; nothing is stored."""
    found = draft(backend, backend.store.plans.get(name), fields.get("text", ""))
    if request.headers.get("hx-request") == "true":
        return page(request, "draft.html", draft=found)
    return _plan_page(request, backend, name, 422 if found.problem else 200, found)


@router.post("/plans/{name}/save")
def save_plan(request: Request, name: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Give a plan another content, if it is still the one that was read."""
    found = draft(backend, backend.store.plans.get(name), fields.get("text", ""))
    if found.plan is None:
        return _plan_page(request, backend, name, 422, found)
    service.update(backend, caller.actor, found.plan, reason_of(fields), expecting(fields.get("etag")))
    return RedirectResponse(f"{CONSOLE}/plans/{name}", 303, headers=HEADERS)


@router.post("/plans/{name}/trigger")
def trigger_plan(request: Request, name: str, fields: Posted, caller: Operator, backend: BackendDep) -> Response:
    """Ask for a run now, and go to it; where its own terms do not fit, the form says so and keeps them."""
    asked = given_terms(fields)
    try:
        run = service.trigger(backend, caller.actor, name, reason_of(fields), overrides_of(asked))
    except InvalidInputError as error:
        return _plan_page(request, backend, name, 422, asked=asked, not_triggered=str(error))
    return RedirectResponse(f"{CONSOLE}/runs/{run.run_id}", 303, headers=HEADERS)


@router.post("/plans/{name}/tune")
def tune_plan(request: Request, name: str, fields: Posted, caller: Operator, backend: BackendDep) -> Response:
    """Ask for a tuning and nothing else, and go to it; where the plan has none, the page says what to add."""
    try:
        run = service.tune(backend, caller.actor, name, reason_of(fields))
    except InvalidInputError as error:
        return _plan_page(request, backend, name, 422, not_triggered=str(error))
    return RedirectResponse(f"{CONSOLE}/runs/{run.run_id}", 303, headers=HEADERS)


@router.post("/plans/{name}/pause")
def pause_plan(name: str, fields: Posted, caller: Operator, backend: BackendDep) -> Response:
    """Stop starting a plan by its schedule."""
    service.set_paused(backend, caller.actor, name, True, reason_of(fields))
    return RedirectResponse(f"{CONSOLE}/plans/{name}", 303, headers=HEADERS)


@router.post("/plans/{name}/resume")
def resume_plan(name: str, fields: Posted, caller: Operator, backend: BackendDep) -> Response:
    """Start a plan by its schedule again."""
    service.set_paused(backend, caller.actor, name, False, reason_of(fields))
    return RedirectResponse(f"{CONSOLE}/plans/{name}", 303, headers=HEADERS)


@router.post("/plans/{name}/archive")
def archive_plan(name: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Put a plan away."""
    service.set_archived(backend, caller.actor, name, True, reason_of(fields))
    return RedirectResponse(f"{CONSOLE}/plans", 303, headers=HEADERS)


@router.post("/plans/{name}/restore")
def restore_plan(name: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Bring an archived plan back."""
    service.set_archived(backend, caller.actor, name, False, reason_of(fields))
    return RedirectResponse(f"{CONSOLE}/plans/{name}", 303, headers=HEADERS)
