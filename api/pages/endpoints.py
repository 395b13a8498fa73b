"""Pages for people."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from api.pages.html import home_page

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
ROUTERS = (router,)


@router.get("/")
async def home(request: Request) -> HTMLResponse:
    """Show what this is and where to go."""
    return HTMLResponse(home_page(request.app.version))
