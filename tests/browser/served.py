"""A page of the console with our own scripts and styles, and no service behind it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from api.console.rendering import FILES, KINDS, environment

ORIGIN = "http://console.invalid"
ADDRESS = f"{ORIGIN}/console"
NOBODY = {
    "caller": None, "navigation": (), "section": "", "form_token": "", "may_inspect": False, "may_operate": False,
    "may_administer": False, "now": datetime(2026, 3, 1, tzinfo=UTC), "version": "0",
}
"""What a template is told of who looks, here nobody."""


def rendered(template: str, **context: Any) -> str:
    """A template's text for nobody."""
    return environment().get_template(template).render(NOBODY | context)


def serve(page: Any, text: str, behind: Mapping[str, str] | None = None) -> list[str]:
    """Have the text answer :data:`ADDRESS`, and open it; the addresses that are asked for, as they come.

    ``behind`` : of some of our files what stands after their own text.
    """
    asked: list[str] = []

    def answer(route: Any) -> None:
        address = route.request.url
        name = urlsplit(address).path.removeprefix("/console/static/")
        asked.append(address)
        if address == ADDRESS:
            route.fulfill(body=text, content_type="text/html")
        elif name in FILES:
            more = (behind or {}).get(name, "")
            route.fulfill(body=FILES[name].read_text() + more, content_type=KINDS[FILES[name].suffix])
        else:
            route.fulfill(status=404)

    page.route("**/*", answer)
    page.goto(ADDRESS)
    return asked
