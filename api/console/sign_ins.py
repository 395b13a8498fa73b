"""Sign-ins by the issuer that have begun: what a browser keeps of one, sealed, in a cookie of ten minutes.

The cookie binds the answer of the issuer to the browser that asked (``state``, ``nonce``) and holds the half of PKCE
that the issuer sees last (RFC 7636). It is sealed (XSalsa20-Poly1305) with a key that follows from one of the home
folder. The store has no part in it: who only looks at the page of signing in leaves no row.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Final

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from api.backend.wiring import Backend
from api.web.sessions import cookie_of
from services.identity.errors import UnauthenticatedError
from services.identity.service_keys import PSEUDONYMS, subkey

COOKIE: Final = "__Host-ballast-sign-in"
SECONDS: Final = 600  # ten minutes for a password and a second factor at the issuer's page
MOST_USED: Final = 10_000  # of all that began within ten minutes
NOT_OURS: Final = "this sign-in was not begun in this browser, took too long, or has ended already; begin again"


@dataclass(frozen=True)
class SignIn:
    """One sign-in on its way; ``to`` is the page of the console that was asked for."""

    to: str
    until: float
    state: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48), repr=False)

    @property
    def challenge(self) -> str:
        """Half of PKCE that the issuer sees first: BASE64URL(SHA256(verifier))."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class SignIns:
    """Begins and ends sign-ins; each ends once in a process, and its code once at the issuer.

    ``key`` gives the 32 bytes that cookies are sealed with, the same in all API processes: one of them begins a
    sign-in that another ends.
    """

    def __init__(self, key: Callable[[], bytes], *, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock
        self._used: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, to: str) -> tuple[SignIn, str]:
        """New sign-in, and the ``Set-Cookie`` header that the browser keeps it by."""
        made = SignIn(to, self._clock() + SECONDS)
        sealed = base64.urlsafe_b64encode(self._box().encrypt(json.dumps(asdict(made)).encode())).decode()
        # Lax, not Strict: the issuer is another site, and sends the browser back with this cookie.
        return made, f"{COOKIE}={sealed}; Path=/; Max-Age={SECONDS}; Secure; HttpOnly; SameSite=Lax"

    def end(self, cookies: str | None, state: str) -> SignIn:
        """Sign-in of a browser's cookie that an answer with this state belongs to; ``UnauthenticatedError``."""
        made = self._opened(cookies)
        if not hmac.compare_digest(made.state.encode(), state.encode("utf-8", "replace")):
            raise UnauthenticatedError(NOT_OURS)
        with self._lock:
            now = self._clock()
            if now >= made.until or made.state in self._used:
                raise UnauthenticatedError(NOT_OURS)
            self._used[made.state] = made.until
            while len(self._used) > MOST_USED or next(iter(self._used.values())) <= now:
                self._used.popitem(last=False)
        return made

    def _opened(self, cookies: str | None) -> SignIn:
        found = cookie_of(cookies, COOKIE)
        if found is None:
            raise UnauthenticatedError(NOT_OURS)
        try:
            return SignIn(**json.loads(self._box().decrypt(base64.urlsafe_b64decode(found))))
        except (CryptoError, ValueError, TypeError):  # the last: of a version whose sign-ins say other things
            raise UnauthenticatedError(NOT_OURS) from None

    def _box(self) -> SecretBox:
        return SecretBox(self._key())


def sign_in_key(backend: Backend) -> bytes:
    """Key that cookies of sign-ins are sealed with, the same in all API processes."""
    return subkey(backend.service_keys.get(PSEUDONYMS), "sign-ins")


def drop_cookie() -> str:
    """Return the ``Set-Cookie`` header that takes the cookie away."""
    return f"{COOKIE}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"
