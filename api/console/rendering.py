"""Pages from templates, with the headers that bind a browser to this origin and to no script but ours."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api.console import charts, formats
from api.console.views.words import REVEALED, gate_words, reveal_words
from api.web.authenticator import Caller
from api.web.sessions import form_token
from services import looks
from services.identity.roles import Permission, permits

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"
KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
FILES: Final = {
    path.relative_to(STATIC).as_posix(): path
    for path in STATIC.rglob("*") if path.is_file() and path.suffix in KINDS
} | {name: looks.FOLDER / name for name in looks.FILES}
"""What pages load, by name: files of the console, and the look that a plant's own page has too."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    # With no-referrer browsers would send `Origin: null` with our own forms, and the check of the origin needs it.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

NAVIGATION: Final = (
    ("/console", "Fleet", Permission.READ),
    ("/console/runs", "Runs", Permission.READ),
    ("/console/models", "Models", Permission.READ),
    ("/console/diagnose", "Diagnose", Permission.DIAGNOSE),
    ("/console/plans", "Plans", Permission.INSPECT),
    ("/console/privacy", "Privacy", Permission.READ),
    ("/console/audit", "Audit", Permission.ADMINISTER),
    ("/console/admin", "Admin", Permission.ADMINISTER),
)


@cache
def environment() -> Environment:
    """Templates: every value is escaped, and a name that is not there is an error."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )
    for name in ("figure", "percent", "size", "duration", "when", "plural", "compact_json", "shown", "unit"):
        made.filters[name] = getattr(formats, name)
    made.globals.update(
        bar=charts.bar, asset=asset, gate_words=gate_words, reveal_words=reveal_words, REVEALED=REVEALED,
    )
    return made


@cache
def asset(name: str) -> str:
    """Address of a file of ours; it changes with the content, so that browsers may keep it."""
    content = FILES[name].read_bytes()
    return f"/console/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Page for whoever asks."""
    caller: Caller | None = getattr(request.state, "caller", None)
    text = environment().get_template(template).render(
        caller=caller, navigation=_navigation(caller), section=_section(request.url.path),
        form_token="" if caller is None or not caller.session else form_token(caller.session),
        may_inspect=caller is not None and permits(caller.token, Permission.INSPECT),
        may_operate=caller is not None and permits(caller.token, Permission.OPERATE),
        may_administer=caller is not None and permits(caller.token, Permission.ADMINISTER),
        now=datetime.now(UTC), version=request.app.version, **context,
    )
    return HTMLResponse(text, status, headers=HEADERS)


def _section(path: str) -> str:
    """Address in the navigation that a page belongs to."""
    if path.endswith("/diagnose"):
        return "/console/diagnose"
    if path in ("/console/system", "/console/components"):
        return "/console/admin"
    return next((link for link, _, _ in NAVIGATION[1:] if path == link or path.startswith(f"{link}/")), path)


def _navigation(caller: Caller | None) -> list[tuple[str, str]]:
    if caller is None:
        return []
    return [(link, name) for link, name, needed in NAVIGATION if permits(caller.token, needed)]
