"""``/docs``: the API's operations, tried out from the page. Without a script the plain list stands there."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from api.console.rendering import HEADERS, POLICY, environment
from api.pages.html import docs_body

router = APIRouter(include_in_schema=False)
DOCS_POLICY: Final = POLICY.replace("img-src 'self'", "img-src 'self' data:")
"""The vendored page keeps its arrows as data addresses in its style."""


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """Show how to call the API, and let it be called."""
    text = environment().get_template("docs.html").render(plain=docs_body(request.app.openapi()))
    return HTMLResponse(text, headers={**HEADERS, "Content-Security-Policy": DOCS_POLICY})
