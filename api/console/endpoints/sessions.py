"""Signing in and out, with an API token; ``oidc.py`` has the other way in."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Match

from api.backend.actor import Actor, record
from api.console.forms import Posted, PostedBySomebody, said_address
from api.console.rendering import HEADERS, page
from api.web.attempts import TooManyAttemptsError
from api.web.auth import CONSOLE, Reader
from api.web.authenticator import TokenAuthenticator
from api.web.dependencies import BackendDep
from api.web.sessions import Sessions, drop_cookie, secret_of, session_id, set_cookie
from services.identity.errors import UnauthenticatedError
from services.process.settings import is_loopback
from services.round_store.store import Repositories

router = APIRouter(prefix=CONSOLE, include_in_schema=False)


@router.get("/sign-in")
def show_sign_in(request: Request, to: str = CONSOLE, unsent: bool = False) -> HTMLResponse:
    """Show the form that opens a session."""
    return sign_in_page(request, own_address(to), "", unsent=unsent, on_loopback=_on_loopback(request))


def sign_in_page(
    request: Request, to: str, problem: str, status: int = 200, *, unsent: bool = False, on_loopback: bool = False
) -> HTMLResponse:
    """Page with the form, and the way to the issuer where one is set up. ``unsent``: a form was not taken before."""
    oidc = request.app.state.authenticator.oidc
    issuer = oidc.issuer.host if oidc is not None and oidc.settings.signs_in else ""
    return page(request, "sign_in.html", status, to=to, problem=problem, unsent=unsent, on_loopback=on_loopback,
                issuer=issuer)


@router.post("/sign-in")
def sign_in(request: Request, fields: PostedBySomebody, backend: BackendDep) -> Response:
    """Open a session with an API token. A session from before in the same browser ends: nobody's is taken over."""
    authenticator: TokenAuthenticator = request.app.state.authenticator
    to, text = own_address(fields.get("to", CONSOLE)), fields.get("token", "").strip()
    client = request.client.host if request.client else ""
    try:
        authenticator.attempts.check(client, f"Bearer {text}")
        caller = authenticator.authenticate(f"Bearer {text}")
    except (UnauthenticatedError, TooManyAttemptsError) as error:
        if isinstance(error, UnauthenticatedError):
            authenticator.attempts.failed(client)
        status = 401 if isinstance(error, UnauthenticatedError) else 429
        return sign_in_page(request, to, str(error), status)
    sessions = authenticator.sessions
    if sessions is None:
        raise UnauthenticatedError("this API has no console")
    with backend.store.atomic() as store:
        ours = sessions.within(store)
        end_former(ours, store, caller.actor, request)
        secret = ours.begin(caller.token)
        record(store, caller.actor, "session.begin", f"session:{session_id(secret)}")
    return RedirectResponse(to, 303, headers={**HEADERS, "Set-Cookie": set_cookie(secret)})


@router.post("/sign-out")
def sign_out(request: Request, _: Posted, caller: Reader, backend: BackendDep) -> Response:
    """End this session."""
    authenticator: TokenAuthenticator = request.app.state.authenticator
    with backend.store.atomic() as store:
        if authenticator.sessions is not None:
            authenticator.sessions.within(store).end(caller.session)
        if caller.subject:  # the row was made for this session
            store.tokens.revoke(caller.token.token_id)
        record(store, caller.actor, "session.end", f"session:{session_id(caller.session)}")
    headers = {**HEADERS, "Set-Cookie": drop_cookie(), "Clear-Site-Data": '"cache"'}
    return RedirectResponse(f"{CONSOLE}/sign-in", 303, headers=headers)


def end_former(sessions: Sessions, store: Repositories, actor: Actor, request: Request) -> None:
    """End the session that the same browser has from before, if it has one, in the transaction of the new one."""
    former = secret_of(request.headers.get("cookie"))
    if former is not None and sessions.end(former):
        record(store, actor, "session.end", f"session:{session_id(former)}", reason="signed in anew in its browser")


def _on_loopback(request: Request) -> bool:
    """Whether the reader sits at this host: there a link may carry the demo's token, and sign in by itself."""
    return is_loopback((request.scope.get("server") or ("",))[0])


def own_address(to: str) -> str:
    """Address below the console that a reader may be sent to; the first page for any other."""
    inside = to == CONSOLE or to.startswith((f"{CONSOLE}/", f"{CONSOLE}?"))
    return to if inside and to.isprintable() and "\\" not in to and "//" not in to.partition("?")[0] else CONSOLE


def sign_in_address(request: Request) -> str:
    """Where to sign in, and come back to the page that was asked for, or to that of a form that was not taken."""
    if request.method != "GET":
        return f"{CONSOLE}/sign-in?to={quote(_page_of_form(request), safe='/')}&unsent=true"
    to = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"{CONSOLE}/sign-in" + ("" if to == CONSOLE else f"?to={quote(to, safe='/')}")


def _page_of_form(request: Request) -> str:
    """Address of our own page that a form was sent from; the first page where the browser does not say.

    So too where that page was itself the answer to a form, at an address that takes forms alone.
    """
    sent_from = said_address(request.headers.get("referer", ""))
    scope = {"type": "http", "method": "GET", "path": sent_from.path}
    read = any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
    if sent_from.netloc != request.headers.get("host") or not read:
        return CONSOLE
    return own_address(sent_from.path + (f"?{sent_from.query}" if sent_from.query else ""))
