"""Sessions of the console: a cookie in the place of the bearer token, for a browser.

The cookie holds 256 random bits, the store their SHA-256. A session is made at signing in and never taken over from
before, so nobody can be given one that another knows (session fixation). It ends by the clock, by signing out, by an
administrator, and with its token. The token against forged requests follows from the cookie's secret; another page
can read neither.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import UTC, datetime, timedelta
from typing import Final

from services.contracts.access.identity import ApiToken, StoredToken
from services.identity.errors import UnauthenticatedError
from services.identity.oidc import Identity
from services.identity.subjects import PREFIX
from services.identity.tokens import issue
from services.round_store.store import Repositories

COOKIE: Final = "__Host-ballast"
"""The prefix makes browsers take it only with Secure, for this host alone, and for all its paths (RFC 6265bis)."""
LIFETIME: Final = timedelta(hours=12)
"""A working day."""
IDLE: Final = timedelta(hours=1)
"""A session that nobody used for so long is over."""
SECRET_BYTES: Final = 32  # 256 bits, which nobody guesses
_SIGNED_IN: Final = "a sign-in"


class Sessions:
    """Opens, checks and ends sessions in the store."""

    def __init__(self, store: Repositories, *, lifetime: timedelta = LIFETIME, idle: timedelta = IDLE) -> None:
        self._store = store
        self._lifetime = lifetime
        self._idle = idle

    def within(self, store: Repositories) -> Sessions:
        """The same in a transaction that is under way: a session and its entry in the audit trail are made together."""
        return Sessions(store, lifetime=self._lifetime, idle=self._idle)

    def begin(self, token: ApiToken) -> str:
        """Secret of a new session of a token that holds."""
        secret = secrets.token_hex(SECRET_BYTES)
        self._store.sessions.begin(digest(secret), token.token_id, self._lifetime)
        return secret

    def begin_signed_in(self, identity: Identity) -> tuple[str, ApiToken]:
        """Secret of a new session of somebody whom the issuer let in, and the token that stands behind it.

        It is a row for this one session, whose own secret nobody has: it is in the list of tokens, can be revoked
        there, and ends with the session. Rows of sessions that are over are swept away.
        """
        issued = issue(_SIGNED_IN, identity.role, datetime.now(UTC), self._lifetime)
        token = issued.stored.token.model_copy(update={"name": f"{identity.name} #{issued.stored.token.token_id}"})
        self._store.sessions.sweep_sign_ins(PREFIX)
        self._store.tokens.add(StoredToken(token=token, secret_sha256=issued.stored.secret_sha256))
        return self.begin(token), token

    def token(self, secret: str) -> ApiToken:
        """Token of a session that holds; ``UnauthenticatedError`` where it is over or its token holds no more."""
        found = self._store.sessions.find(digest(secret))
        if found is None:
            raise UnauthenticatedError("this session has ended; sign in again")
        session, token = found
        now = datetime.now(UTC)
        # Used that long in the future: the clock was put back since, and nobody knows for how long it lay idle.
        unused = abs(now - session.last_used_at) >= self._idle
        if now >= session.expires_at or unused or not token.is_live(now):
            raise UnauthenticatedError("this session has ended; sign in again")
        return token

    def touch(self, secret: str) -> None:
        """Note that a session is in use, so that it is not idle."""
        self._store.sessions.touch(digest(secret))

    def end(self, secret: str) -> bool:
        """End the session of a secret; whether there was one."""
        return self._store.sessions.end(digest(secret))


def subject_of_sign_in(token: ApiToken) -> str:
    """Name of the subject whose sign-in a token stands for; empty for a token of another kind.

    The name of such a token ends with its own id, which who makes a token by hand cannot choose: no API token can be
    named so that the audit trail takes its holder for somebody whom the issuer let in.
    """
    name, mark, token_id = token.name.partition(" #")
    return name if name.startswith(PREFIX) and mark and token_id == token.token_id else ""


def digest(secret: str) -> str:
    """What the store knows of a session's secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def session_id(secret: str) -> str:
    """Public id of a session."""
    return digest(secret)[:16]


def form_token(secret: str) -> str:
    """Token that every form of a session carries: HMAC-SHA256(secret, "form")."""
    return hmac.new(secret.encode("utf-8", "replace"), b"form", hashlib.sha256).hexdigest()


def secret_of(cookies: str | None) -> str | None:
    """Secret of a session in a ``Cookie`` header; None where there is none."""
    return cookie_of(cookies, COOKIE)


def cookie_of(cookies: str | None, name: str) -> str | None:
    """Value of a cookie in a ``Cookie`` header; None where it is empty or not there.

    Browsers send along what every other program at this host has set, at whichever port. ``http.cookies`` ends at the
    first of these that is not to the letter of the standard, and does not see ours behind it.
    """
    parts = (part.partition("=") for part in (cookies or "").split(";"))
    return next((value.strip() for key, _, value in parts if key.strip() == name), "") or None


def set_cookie(secret: str, *, lifetime: timedelta = LIFETIME) -> str:
    """Return the ``Set-Cookie`` header of a new session."""
    return f"{COOKIE}={secret}; Path=/; Max-Age={int(lifetime.total_seconds())}; Secure; HttpOnly; SameSite=Strict"


def drop_cookie() -> str:
    """Return the ``Set-Cookie`` header that takes the cookie away."""
    return f"{COOKIE}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict"
