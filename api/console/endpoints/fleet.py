"""The first page, what the console is made of, and what was revealed."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from api.console.rendering import page
from api.console.views.fleet import fleet
from api.console.views.privacy import privacy
from api.web.auth import CONSOLE, Reader
from api.web.dependencies import BackendDep

router = APIRouter(prefix=CONSOLE, include_in_schema=False)


@router.get("")
def fleet_page(request: Request, caller: Reader, backend: BackendDep, model: str | None = None) -> HTMLResponse:
    """Show the plants, what runs, and what wants attention."""
    found = fleet(backend, model, datetime.now(UTC), real=caller.sees_site_names)
    return page(request, "fleet.html", fleet=found)


@router.get("/privacy")
def privacy_page(request: Request, caller: Reader, backend: BackendDep) -> HTMLResponse:
    """Show what the last runs revealed, by plant."""
    return page(request, "privacy.html", privacy=privacy(backend, real=caller.sees_site_names))


@router.get("/components")
def components_page(request: Request, _: Reader) -> HTMLResponse:
    """Show every component that pages are made of."""
    return page(request, "components.html")
