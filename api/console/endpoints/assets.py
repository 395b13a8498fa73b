"""Files that pages load: style, scripts, and the libraries that are kept beside them."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from fastapi.responses import FileResponse

from api.console.rendering import FILES, KINDS
from api.web.auth import CONSOLE
from services.contracts.errors import NotFoundError

router = APIRouter(prefix=CONSOLE, include_in_schema=False)
FOREVER: Final = "public, max-age=31536000, immutable"
"""The address has the content's digest in it."""


@router.get("/static/{name:path}")
def asset(name: str) -> FileResponse:
    """File of the console; only those that came with it."""
    if name not in FILES:
        raise NotFoundError("there is no such file")
    path = FILES[name]
    return FileResponse(path, media_type=KINDS[path.suffix], headers={"Cache-Control": FOREVER})
