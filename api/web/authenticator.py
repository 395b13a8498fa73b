"""Who a token or the session of a cookie stands for, as the store has it; and that it was used."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from api.backend.actor import Actor
from api.web.attempts import FailedAttempts
from api.web.sessions import Sessions, subject_of_sign_in
from services.contracts.access.identity import ApiToken, Role
from services.contracts.errors import UnavailableError
from services.identity.errors import UnauthenticatedError
from services.identity.oidc import OidcVerifier
from services.identity.roles import Permission, permits
from services.identity.tokens import PREFIX, check, token_id_of
from services.round_store.access.tokens import TOUCH_SECONDS, TokenRepository

LOG = logging.getLogger("ballast.api")
NO_TOKEN: Final = "this needs a token: send the header Authorization: Bearer <token>"
MOST_CHECKED: Final = 1_000
"""Tokens that were checked and are remembered, by their SHA-256."""
MOST_NOTED: Final = 10_000
"""Tokens and sessions whose last use is remembered before those of more than a minute ago are forgotten."""


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


def _digest(header: str) -> bytes:
    return hashlib.sha256(header.encode("utf-8", "replace")).digest()
