"""Signing in by the issuer of ``[oidc]``: authorization code flow with PKCE, then a session like every other."""

from __future__ import annotations

import logging
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.backend.actor import Actor, record
from api.console.endpoints.sessions import end_former, own_address, sign_in_page
from api.console.rendering import HEADERS, page
from api.console.sign_ins import SignIns, drop_cookie
from api.web.attempts import TooManyAttemptsError
from api.web.auth import CONSOLE
from api.web.authenticator import TokenAuthenticator
from api.web.dependencies import BackendDep
from api.web.sessions import session_id, set_cookie
from services.contracts.errors import BallastError, NotFoundError, UnavailableError
from services.identity.errors import ForbiddenError, UnauthenticatedError
from services.identity.oidc import OidcVerifier

LOG = logging.getLogger("ballast.api")
router = APIRouter(prefix=f"{CONSOLE}/sign-in/oidc", include_in_schema=False)
REFUSED = "the issuer did not let you in"
MOST_COOKIE = 4096
"""Characters of a cookie that browsers keep (RFC 6265, 6.1); of a longer one they say nothing, and nobody got in."""
AWAY = "the issuer cannot be asked at the moment; sign in with a token, or try again later"


@router.get("")
def begin(request: Request, to: str = CONSOLE) -> Response:
    """Send the browser to the issuer."""
    oidc, sign_ins = _configured(request)
    made, cookie = sign_ins.begin(own_address(to))
    if len(cookie) > MOST_COOKIE:
        made, cookie = sign_ins.begin(CONSOLE)
    try:
        address = oidc.issuer.sign_in_address(made.state, made.nonce, made.challenge)
    except UnavailableError as error:
        return _refused(request, error)
    return RedirectResponse(address, 303, headers={**HEADERS, "Set-Cookie": cookie})


@router.get("/callback")
def callback(
    request: Request, backend: BackendDep, state: str = "", code: str = "", error: str = "", iss: str | None = None
) -> Response:
    """Take the issuer's answer. A session from before in the same browser ends: nobody's is taken over."""
    oidc, sign_ins = _configured(request)
    authenticator: TokenAuthenticator = request.app.state.authenticator
    client = request.client.host if request.client else ""
    sessions = authenticator.sessions
    if sessions is None:
        raise UnauthenticatedError("this API has no console")
    try:
        authenticator.attempts.check(client, None)
        made = sign_ins.end(request.headers.get("cookie"), state)
        if error or not code or iss not in (None, oidc.settings.issuer):  # iss: RFC 9207
            raise UnauthenticatedError(REFUSED)
        identity = oidc.signed_in(oidc.issuer.id_token(code, made.verifier), made.nonce)
    except (UnauthenticatedError, ForbiddenError, UnavailableError, TooManyAttemptsError) as refusal:
        if isinstance(refusal, UnauthenticatedError):
            authenticator.attempts.failed(client)
        return _refused(request, refusal)
    actor = Actor(identity.name, identity.role)
    with backend.store.atomic() as store:
        ours = sessions.within(store)
        end_former(ours, store, actor, request)
        secret, token = ours.begin_signed_in(identity)
        record(store, actor, "session.begin", f"session:{session_id(secret)}")
    LOG.info("session %s of %s begins, token %s", session_id(secret), identity.name, token.token_id)
    # A page, not a redirect: browsers send a cookie of SameSite=Strict only where our own page leads to the next one.
    answer = page(request, "signed_in.html", to=made.to)
    answer.headers["Refresh"] = f"0; url={quote(made.to, safe='/?&=%')}"
    answer.headers.append("Set-Cookie", set_cookie(secret))
    answer.headers.append("Set-Cookie", drop_cookie())
    return answer


def _configured(request: Request) -> tuple[OidcVerifier, SignIns]:
    oidc: OidcVerifier | None = request.app.state.authenticator.oidc
    if oidc is None or not oidc.settings.signs_in:
        raise NotFoundError("no issuer is set up for signing in")
    sign_ins: SignIns = request.app.state.sign_ins
    return oidc, sign_ins


def _refused(request: Request, error: BallastError) -> Response:
    """Return the form again, with one line of what went wrong."""
    status, told = 401, str(error)
    if isinstance(error, UnavailableError):
        LOG.warning("signing in by the issuer: %s", error)
        status, told = 503, AWAY
    elif isinstance(error, ForbiddenError):
        status = 403
    elif isinstance(error, TooManyAttemptsError):
        status = 429
    answer = sign_in_page(request, CONSOLE, told, status)
    answer.headers.append("Set-Cookie", drop_cookie())
    return answer
