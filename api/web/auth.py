"""Who calls: a bearer token before anything else is read, then the permission that each route asks for.

The session of the console's cookie stands in the place of a token on the console's own pages, and below ``/v1`` for
reading alone: what changes something there takes a bearer token, which no other page can make a browser send.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Depends, Request, Response, Security
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.backend.actor import Actor
from api.web.attempts import FailedAttempts
from api.web.errors import ballast_problem
from api.web.parameters import refuse_unknown
from api.web.sessions import Sessions, secret_of, subject_of_sign_in
from services.contracts.errors import BallastError, UnavailableError
from services.contracts.identity import ApiToken, Role
from services.identity.errors import UnauthenticatedError
from services.identity.oidc import OidcVerifier
from services.identity.roles import Permission, permits, require
from services.identity.tokens import PREFIX, check, token_id_of
from services.round_store.tokens import TOUCH_SECONDS, TokenRepository

LOG = logging.getLogger("ballast.api")
READING: Final = frozenset({"GET", "HEAD"})
PROTECTED: Final = "/v1"
"""Every address below this needs a token, whatever its route says."""
METRICS: Final = "/metrics"
"""Needs a token too; it stands where Prometheus looks for it."""
PROTOCOL: Final = "/v2"
"""And below this, where the Open Inference Protocol has its addresses: all but those of the server's health."""
HEALTH: Final = f"{PROTOCOL}/health"
CONSOLE: Final = "/console"
"""Addresses whose pages know a caller by the session's cookie."""
NO_TOKEN: Final = "this needs a token: send the header Authorization: Bearer <token>"
MOST_CHECKED: Final = 1_000
"""Tokens that were checked and are remembered, by their SHA-256."""
MOST_NOTED: Final = 10_000
"""Tokens and sessions whose last use is remembered before those of more than a minute ago are forgotten."""

BEARER: Final = HTTPBearer(
    scheme_name="token", bearerFormat="blst_<id>_<secret>", auto_error=False,
    description="An API token, from `ballast token create` or POST /v1/admin/tokens, or an access token of the issuer.",
)


@dataclass(frozen=True)
class Caller:
    """Who has shown a token that holds, or the ``session`` (its secret) of one that signed in to the console."""

    token: ApiToken
    session: str = field(default="", repr=False)
    subject: str = ""
    """Name of who was let in by the issuer of ``[oidc]``, ``oidc:<host>:<subject>``; empty for an API token."""

    @property
    def role(self) -> Role:
        """What the caller is."""
        return self.token.role

    @property
    def actor(self) -> Actor:
        """Caller as the audit trail names it."""
        return Actor(self.subject or f"token:{self.token.token_id} {self.token.name}", self.role)

    @property
    def sees_site_names(self) -> bool:
        """Whether the caller may know which plants take part; others see pseudonyms."""
        return permits(self.token, Permission.INSPECT)

    @property
    def is_administrator(self) -> bool:
        """Whether the caller may see what tells single plants apart."""
        return permits(self.token, Permission.ADMINISTER)


class TokenAuthenticator:
    """Checks tokens against the store, and notes their use at most once a minute each.

    ``mark`` is another as soon as anything was written to the store, None where that cannot be told.
    """

    def __init__(
        self, tokens: TokenRepository, sessions: Sessions | None = None, oidc: OidcVerifier | None = None, *,
        clock: Callable[[], float] = time.monotonic, mark: Callable[[], object] = lambda: None,
    ) -> None:
        self._tokens = tokens
        self.sessions = sessions
        self.oidc = oidc
        self._clock = clock
        self.attempts = FailedAttempts(clock=clock)
        self._noted: dict[str, float] = {}
        self._lock = threading.Lock()
        self._mark = mark
        self._checked: dict[bytes, tuple[Caller, object]] = {}

    def known(self, header: str | None) -> Caller | None:
        """Caller of a header that was checked already, if nothing at all was written to the store since.

        So a token that is revoked anywhere is revoked here with the next request. None: it has to be checked. Asks no
        server, so that it may be called where nothing may wait.
        """
        found = self._checked.get(_digest(header)) if header else None
        if found is None or found[1] != self._mark() or not found[0].token.is_live(datetime.now(UTC)):
            return None
        return found[0]

    def authenticate(self, header: str | None) -> Caller:
        """Caller of an ``Authorization`` header; raise ``UnauthenticatedError``."""
        before = self._mark()  # what is written while the token is looked up counts as later
        scheme, _, text = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise UnauthenticatedError(NO_TOKEN)
        text = text.strip()
        if self.oidc is not None and not text.startswith(f"{PREFIX}_"):
            identity = self.oidc.bearer(text)
            self.attempts.held(text)
            return Caller(identity.as_token(), subject=identity.name)
        stored = self._tokens.find(token_id_of(text))
        caller = Caller(check(text, stored, datetime.now(UTC)))
        self.attempts.held(text)
        if before is not None and header is not None:
            if len(self._checked) >= MOST_CHECKED:
                self._checked = {}
            self._checked[_digest(header)] = caller, before
        return caller

    def of_session(self, secret: str) -> Caller:
        """Caller of a session of the console; raise ``UnauthenticatedError``."""
        if self.sessions is None:
            raise UnauthenticatedError(NO_TOKEN)
        token = self.sessions.token(secret)
        return Caller(token, secret, subject_of_sign_in(token))

    def is_use_due(self, caller: Caller) -> bool:
        """Whether the caller's use was last noted a minute ago or more; the asker is the one who notes it."""
        if caller.subject and not caller.session:
            return False  # an access token of the issuer stands in no table
        now, used = self._clock(), caller.session or caller.token.token_id
        with self._lock:
            due = now - self._noted.get(used, -math.inf) >= TOUCH_SECONDS
            if due:
                self._noted[used] = now
                if len(self._noted) > MOST_NOTED:
                    self._noted = {name: at for name, at in self._noted.items() if now - at < TOUCH_SECONDS}
            return due

    def note_use(self, caller: Caller) -> None:
        """Write down that the caller's token was used."""
        try:
            self._tokens.touch(caller.token.token_id)
            if caller.session and self.sessions is not None:
                self.sessions.touch(caller.session)
        except UnavailableError as error:
            # Reading goes on without this note: a database that cannot be written is no reason to stop diagnoses.
            LOG.warning("the last use of token %s was not noted: %s", caller.token.token_id, error)


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
            await _refusal(error)(scope, receive, send)
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


def _digest(header: str) -> bytes:
    return hashlib.sha256(header.encode("utf-8", "replace")).digest()


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
