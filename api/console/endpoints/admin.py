"""The audit trail, plants, tokens, sessions, and the state of the system."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ValidationError

from api.backend.actor import record
from api.backend.answering import hanging
from api.backend.flows_process import flows_at_work
from api.console.forms import Fields, Posted, reason_of
from api.console.rendering import HEADERS, page
from api.console.views.links import pages_of
from api.health.service import missing_parts
from api.sites import service as sites
from api.sites.schemas import KeyChange, NewCode, SiteEnrolment
from api.system import checks, facts
from api.system.doctor import last_backup
from api.tokens import service as tokens
from api.tokens.schemas import NewToken, TokenRequest
from api.web.auth import CONSOLE, Administrator
from api.web.dependencies import BackendDep, Offset
from services.contracts.errors import InvalidInputError, NotFoundError
from services.contracts.reading import explain
from services.round_store.database.schema import SCHEMA_REVISION

router = APIRouter(prefix=CONSOLE, include_in_schema=False)
PAGE: Final = 50  # entries of the trail, or plants with their forms, on a page


@router.get("/audit")
def audit_page(
    request: Request, _: Administrator, backend: BackendDep, actor: str = "", action: str = "", target: str = "",
    offset: Offset = 0, verify: bool = False,
) -> HTMLResponse:
    """Show who did what, newest first, and whether the chain is whole."""
    events = backend.store.audit.list_events(
        actor=actor or None, action=action or None, target=target or None, limit=PAGE + 1, offset=offset
    )
    return page(
        request, "audit.html", events=events[:PAGE], more=len(events) > PAGE, actor=actor, action=action,
        target=target, offset=offset, step=PAGE, chain=backend.store.audit.verify_chain() if verify else None,
    )


@router.get("/admin")
def admin_page(
    request: Request, _: Administrator, backend: BackendDep, plant: str = "", offset: Offset = 0
) -> HTMLResponse:
    """Show plants, tokens and sessions; ``plant``: only those with this in their id or description."""
    return admin_view(request, backend, plant=plant, offset=offset)


def admin_view(
    request: Request, backend: BackendDep, status: int = 200, problem: str = "", made: NewToken | None = None,
    code: NewCode | None = None, plant: str = "", offset: int = 0,
) -> HTMLResponse:
    """The page, with what was just made, which no other page shows, or what of a form does not fit."""
    found, plants, wanted = backend.store.tokens.list_tokens(), backend.store.sites.list_sites(), plant.strip().lower()
    like = [each for each in plants if wanted in each.site_id or wanted in each.description.lower()]
    return page(
        request, "admin.html", status, sites=like[offset : offset + PAGE], more=len(like) > offset + PAGE,
        offset=offset, step=PAGE, plant=plant, is_long=len(plants) > PAGE, tokens=found,
        sessions=backend.store.sessions.list_sessions(), asset_types=backend.store.asset_types.list_asset_types(),
        codes=backend.store.enrolment_codes.list_open(), made=made, code=code, problem=problem,
        settings=backend.settings, holders={each.token_id: each for each in found},
    )


def answered(request: Request, backend: BackendDep, form: type[BaseModel], act: Callable[[], Response]) -> Response:
    """What an action on this page answers; the page again, with the reason, where its form does not fit."""
    try:
        return act()
    except ValidationError as error:
        return admin_view(request, backend, 422, explain(error, form))
    except InvalidInputError as error:
        return admin_view(request, backend, 422, str(error))


@router.get("/system")
def system_page(request: Request, _: Administrator, backend: BackendDep) -> HTMLResponse:
    """Show whether all that is needed answers, what the quick checks found, and where the other servers' pages are."""
    now, settings = facts.utc_now(), backend.settings
    lively = flows_at_work(settings) is not False
    found = [
        facts.disk(settings), facts.secrets(settings), *facts.certificates(settings, now),
        checks.webhooks(backend.store.webhooks.list_webhooks()), checks.backup(last_backup(backend), now),
    ]
    return page(
        request, "system.html", missing=missing_parts(backend), lively=lively, hanging=hanging(settings),
        pages=pages_of(settings), schema=SCHEMA_REVISION, settings=settings, found=found,
        kinds={"ok": "good", "warn": "warn", "fail": "bad"},
    )


@router.post("/admin/sites")
def enrol_site(request: Request, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Enrol a plant with its public key."""
    def enrol() -> Response:
        wanted = SiteEnrolment(
            site_id=fields.get("site_id", "").strip(), public_key=fields.get("public_key", ""),
            asset_types=tuple(name for name in fields.get("asset_types", "").replace(",", " ").split()),
            description=fields.get("description", "").strip(),
        )
        sites.enrol(backend, caller.actor, wanted)
        return _to_plant(backend, wanted.site_id)

    return answered(request, backend, SiteEnrolment, enrol)


@router.post("/admin/sites/{site_id}/suspend")
def suspend_site(site_id: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Ask a plant no more, and cut its connection."""
    sites.suspend(backend, caller.actor, site_id, reason_of(fields))
    return _to_plant(backend, site_id)


@router.post("/admin/sites/{site_id}/activate")
def activate_site(site_id: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Ask a suspended plant again."""
    sites.activate(backend, caller.actor, site_id, reason_of(fields))
    return _to_plant(backend, site_id)


@router.post("/admin/sites/{site_id}/remove")
def remove_site(site_id: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """End a plant's enrolment; a reason is needed."""
    sites.remove(backend, caller.actor, site_id, reason_of(fields, needed=True))
    return _to_plant(backend, site_id)


@router.post("/admin/sites/{site_id}/key")
def rotate_key(request: Request, site_id: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Give a plant another key."""
    def rotate() -> Response:
        change = KeyChange(
            public_key=fields.get("public_key", ""), overlap_hours=number_of(fields, "overlap_hours", 24.0),
            reason=reason_of(fields),
        )
        sites.rotate_key(backend, caller.actor, site_id, change)
        return _to_plant(backend, site_id)

    return answered(request, backend, KeyChange, rotate)


@router.post("/admin/tokens")
def create_token(request: Request, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Make a token and show it this once: the answer to this form is the only page that has it."""
    def create() -> Response:
        days = number_of(fields, "days", math.nan)
        wanted = TokenRequest.model_validate({
            "name": fields.get("name", "").strip(), "role": fields.get("role", ""),
            "days": None if math.isnan(days) else days,
        })
        return admin_view(request, backend, made=tokens.create(backend, caller.actor, wanted))

    return answered(request, backend, TokenRequest, create)


@router.post("/admin/tokens/{token_id}/revoke")
def revoke_token(token_id: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Revoke a token for good; its sessions end with it."""
    tokens.revoke(backend, caller.actor, token_id, reason_of(fields))
    return _back("tokens")


@router.post("/admin/sessions/{session_id}/end")
def end_session(session_id: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """End somebody's session."""
    with backend.store.atomic() as store:
        if len(session_id) != 16 or not store.sessions.end(session_id):
            raise NotFoundError("there is no such session; it has ended")
        record(store, caller.actor, "session.end", f"session:{session_id}", reason=reason_of(fields))
    return _back("sessions")


def _back(part: str, query: str = "") -> Response:
    return RedirectResponse(f"{CONSOLE}/admin{query}#{part}", 303, headers=HEADERS)


def _to_plant(backend: BackendDep, site_id: str) -> Response:
    """To the plants; where they are more than a page, to the one that was changed."""
    is_long = len(backend.store.sites.list_sites()) > PAGE
    return _back("plants", f"?plant={quote(site_id)}" if is_long else "")


def number_of(fields: Fields, name: str, default: float) -> float:
    """A number of a form; ``default`` where nothing is written. :class:`InvalidInputError` where it is no number."""
    text = fields.get(name, "").strip()
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"{name}: a number is needed")
    return number
