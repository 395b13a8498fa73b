"""Failures on the console's pages, as pages."""

from __future__ import annotations

import json
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from api.console.endpoints.sessions import sign_in_address
from api.console.rendering import HEADERS, page
from api.web.auth import CONSOLE

TITLES = {
    HTTPStatus.FORBIDDEN: "Not allowed", HTTPStatus.NOT_FOUND: "Not there", HTTPStatus.CONFLICT: "Not possible now",
    HTTPStatus.UNPROCESSABLE_ENTITY: "That does not fit", HTTPStatus.SERVICE_UNAVAILABLE: "A server is away",
    HTTPStatus.PRECONDITION_FAILED: "Somebody was quicker",
}
ENDED = "Your session has ended, and nothing was done. Keep what you wrote, then open the page again to sign in."


def as_page(request: Request, problem: Response) -> Response:
    """Problem document as a page where a page was asked for; somebody unknown is sent to sign in."""
    path = request.url.path
    if path != CONSOLE and not path.startswith(f"{CONSOLE}/"):
        return problem
    if problem.status_code == HTTPStatus.UNAUTHORIZED:
        address, of_part = sign_in_address(request), request.headers.get("hx-request") == "true"
        if of_part and request.method != "GET":  # the page stays: what was written in it is nowhere else
            return page(request, "error.html", problem.status_code, title="Signed out", detail=ENDED, incident="")
        if of_part:
            return Response(status_code=HTTPStatus.UNAUTHORIZED, headers={**HEADERS, "HX-Redirect": address})
        return RedirectResponse(address, HTTPStatus.SEE_OTHER, headers=HEADERS)
    told = json.loads(bytes(problem.body))
    title = TITLES.get(HTTPStatus(problem.status_code), told["title"])
    incident = told.get("incident") or ""
    return page(request, "error.html", problem.status_code, title=title, detail=told["detail"], incident=incident)
