"""Who calls: a bearer token before anything else is read, then the permission that each route asks for."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
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
from services.contracts.errors import BallastError, UnavailableError
from services.contracts.identity import ApiToken, Role
from services.identity.errors import UnauthenticatedError
from services.identity.roles import Permission, permits, require
from services.identity.tokens import check, token_id_of
from services.round_store.tokens import TOUCH_SECONDS, TokenRepository

LOG = logging.getLogger("ballast.api")
PROTECTED: Final = "/v1"
"""Every address below this needs a token, whatever its route says."""
NO_TOKEN: Final = "this needs a token: send the header Authorization: Bearer <token>"

BEARER: Final = HTTPBearer(
    scheme_name="token", bearerFormat="blst_<id>_<secret>", auto_error=False,
    description="An API token, from `ballast token create` or POST /v1/admin/tokens.",
)


@dataclass(frozen=True)
class Caller:
    """Who has shown a token that holds."""

    token: ApiToken

    @property
    def role(self) -> Role:
        """What the caller is."""
        return self.token.role

    @property
    def actor(self) -> Actor:
        """Caller as the audit trail names it."""
        return Actor(f"token:{self.token.token_id} {self.token.name}", self.role)

    @property
    def sees_site_names(self) -> bool:
        """Whether the caller may know which plants take part; others see pseudonyms."""
        return permits(self.token, Permission.OPERATE)

    @property
    def is_administrator(self) -> bool:
        """Whether the caller may see what tells single plants apart."""
        return permits(self.token, Permission.ADMINISTER)


class TokenAuthenticator:
    """Checks tokens against the store, and notes their use at most once a minute each."""

    def __init__(self, tokens: TokenRepository, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._clock = clock
        self.attempts = FailedAttempts(clock=clock)
        self._noted: dict[str, float] = {}
        self._lock = threading.Lock()

    def authenticate(self, header: str | None) -> Caller:
        """Caller of an ``Authorization`` header; raise ``UnauthenticatedError``."""
        scheme, _, text = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise UnauthenticatedError(NO_TOKEN)
        text = text.strip()
        stored = self._tokens.find(token_id_of(text))
        caller = Caller(check(text, stored, datetime.now(UTC)))
        self.attempts.held(text)
        return caller

    def is_use_due(self, caller: Caller) -> bool:
        """Whether the caller's use was last noted a minute ago or more; the asker is the one who notes it."""
        now, token_id = self._clock(), caller.token.token_id
        with self._lock:
            due = now - self._noted.get(token_id, -math.inf) >= TOUCH_SECONDS
            if due:
                self._noted[token_id] = now
            return due

    def note_use(self, caller: Caller) -> None:
        """Write down that the caller's token was used."""
        try:
            self._tokens.touch(caller.token.token_id)
        except UnavailableError as error:
            # Reading goes on without this note: a database that cannot be written is no reason to stop diagnoses.
            LOG.warning("the last use of token %s was not noted: %s", caller.token.token_id, error)


class Authentication:
    """Turns away every request below :data:`PROTECTED` without a token that holds, before its body is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a known caller through, with who it is in the request's state."""
        if scope["type"] != "http" or not _is_protected(scope):
            await self._app(scope, receive, send)
            return
        authenticator: TokenAuthenticator = scope["app"].state.authenticator
        header, client = Headers(scope=scope).get("authorization"), (scope.get("client") or ("",))[0]
        try:
            authenticator.attempts.check(client, header)
            caller = await run_in_threadpool(authenticator.authenticate, header)
        except BallastError as error:
            if isinstance(error, UnauthenticatedError) and header:
                authenticator.attempts.failed(client)
            await _refusal(error)(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)
        if authenticator.is_use_due(caller):  # after the answer: nobody waits for it
            await run_in_threadpool(authenticator.note_use, caller)


def _refusal(error: BallastError) -> Response:
    """Answer to somebody unknown: that tokens cannot be checked, but not where the database is."""
    if isinstance(error, UnavailableError):
        LOG.warning("tokens cannot be checked: %s", error)
        error = UnavailableError("tokens cannot be checked at the moment; the server's log says why", code=error.code)
    return ballast_problem(error)


def _is_protected(scope: Scope) -> bool:
    path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
    return path == PROTECTED or path.startswith(f"{PROTECTED}/")


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
        return caller


Reader = Annotated[Caller, Depends(RequiredPermission(Permission.READ))]
Diagnoser = Annotated[Caller, Depends(RequiredPermission(Permission.DIAGNOSE))]
Operator = Annotated[Caller, Depends(RequiredPermission(Permission.OPERATE))]
Administrator = Annotated[Caller, Depends(RequiredPermission(Permission.ADMINISTER))]
