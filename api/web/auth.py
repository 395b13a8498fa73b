"""Who calls: a bearer token before anything else is read, then the permission that each route asks for.

The session of the console's cookie stands in the place of a token on the console's own pages, and below ``/v1`` for
reading alone: what changes something there takes a bearer token, which no other page can make a browser send.
"""

from __future__ import annotations

import logging
from typing import Annotated, Final

from fastapi import Depends, Request, Response, Security
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.web.authenticator import NO_TOKEN, Caller, TokenAuthenticator
from api.web.errors import ballast_problem
from api.web.parameters import refuse_unknown
from api.web.sessions import secret_of
from services.contracts.errors import BallastError, UnavailableError
from services.identity.errors import UnauthenticatedError
from services.identity.roles import Permission, require

LOG = logging.getLogger("ballast.api")
READING: Final = frozenset({"GET", "HEAD"})
PROTECTED: Final = "/v1"
"""Every address below this needs a token, whatever its route says."""
METRICS: Final = "/metrics"
"""Needs a token too; it stands where Prometheus looks for it."""
STORE_DOWN: Final = (
    "# HELP ballast_store_up Whether the store answers\n# TYPE ballast_store_up gauge\nballast_store_up 0.0\n"
)
"""Metrics for whose token cannot be looked up, so that an alert names the store; anybody may ask `/readyz` for it."""
PROTOCOL: Final = "/v2"
"""And below this, where the Open Inference Protocol has its addresses: all but those of the server's health."""
HEALTH: Final = f"{PROTOCOL}/health"
CONSOLE: Final = "/console"
"""Addresses whose pages know a caller by the session's cookie."""

BEARER: Final = HTTPBearer(
    scheme_name="token", bearerFormat="blst_<id>_<secret>", auto_error=False,
    description="An API token, from `ballast token create` or POST /v1/admin/tokens, or an access token of the issuer.",
)


class Authentication:
    """Turns away every request below :data:`PROTECTED` without a token that holds, before its body is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a known caller through, with who it is in the request's state."""
        if scope["type"] != "http" or not (_needs_token(scope) or _is_below(scope, CONSOLE)):
            await self._app(scope, receive, send)
            return
        authenticator: TokenAuthenticator = scope["app"].state.authenticator
        headers = Headers(scope=scope)
        if _is_below(scope, CONSOLE):
            await self._with_session(authenticator, secret_of(headers.get("cookie")), scope, receive, send)
            return
        header, client = headers.get("authorization"), (scope.get("client") or ("",))[0]
        secret = None if header is not None else secret_of(headers.get("cookie"))
        if secret is not None and scope["method"] in READING:
            await self._with_session(authenticator, secret, scope, receive, send, needed=True)
            return
        try:
            authenticator.attempts.check(client, header)
            known = authenticator.known(header)
            caller = await run_in_threadpool(authenticator.authenticate, header) if known is None else known
        except BallastError as error:
            if isinstance(error, UnauthenticatedError) and header:
                authenticator.attempts.failed(client)
            refusal = _refusal(error)
            if _is_below(scope, METRICS) and isinstance(error, UnavailableError) and error.code.startswith("database_"):
                refusal = Response(STORE_DOWN, media_type=CONTENT_TYPE_LATEST)
            await refusal(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)
        if authenticator.is_use_due(caller):  # after the answer: nobody waits for it
            await run_in_threadpool(authenticator.note_use, caller)

    async def _with_session(
        self, authenticator: TokenAuthenticator, secret: str | None, scope: Scope, receive: Receive, send: Send,
        *, needed: bool = False,
    ) -> None:
        """Hand on with the caller of a session; without one, unless it is needed, as nobody: the route decides."""
        caller = None
        try:
            caller = None if secret is None else await run_in_threadpool(authenticator.of_session, secret)
        except UnauthenticatedError as error:
            if needed:
                await _refusal(error)(scope, receive, send)
                return
        except BallastError as error:
            await _refusal(error)(scope, receive, send)
            return
        if caller is not None:
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)
        if caller is not None and authenticator.is_use_due(caller):
            await run_in_threadpool(authenticator.note_use, caller)


def _refusal(error: BallastError) -> Response:
    """Answer to somebody unknown: that tokens cannot be checked, but not where the database is."""
    if isinstance(error, UnavailableError):
        LOG.warning("tokens cannot be checked: %s", error)
        error = UnavailableError("tokens cannot be checked at the moment; the server's log says why", code=error.code)
    return ballast_problem(error)


def _needs_token(scope: Scope) -> bool:
    if _is_below(scope, HEALTH):
        return False
    return any(_is_below(scope, start) for start in (PROTECTED, METRICS, PROTOCOL))


def _is_below(scope: Scope, start: str) -> bool:
    path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
    return path == start or path.startswith(f"{start}/")


class RequiredPermission:
    """Dependency of a route: the caller's role must have a permission. Shown in the API's documentation."""

    def __init__(self, permission: Permission) -> None:
        self.permission = permission

    async def __call__(self, request: Request, _: Annotated[object, Security(BEARER)]) -> Caller:
        """Caller of the request; raise ``ForbiddenError``."""
        caller: Caller | None = getattr(request.state, "caller", None)
        if caller is None:
            raise UnauthenticatedError(NO_TOKEN)
        require(caller.token, self.permission)
        if any(_is_below(request.scope, start) for start in (PROTECTED, PROTOCOL)):
            refuse_unknown(request)
        return caller


Reader = Annotated[Caller, Depends(RequiredPermission(Permission.READ))]
Diagnoser = Annotated[Caller, Depends(RequiredPermission(Permission.DIAGNOSE))]
Engineer = Annotated[Caller, Depends(RequiredPermission(Permission.INSPECT))]
Operator = Annotated[Caller, Depends(RequiredPermission(Permission.OPERATE))]
Administrator = Annotated[Caller, Depends(RequiredPermission(Permission.ADMINISTER))]
