"""An issuer as it is asked by HTTP: its discovery document, its keys, and the token for a code."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import httpx

from services.contracts.access.oidc import OidcSettings, check_address
from services.contracts.errors import UnavailableError
from services.identity.errors import UnauthenticatedError
from services.identity.oidc_keys import NOT_KNOWN, KeyCache, PublicKey, read_keys

TIMEOUT_SECONDS: Final = 5.0
"""To connect, and for each part of an answer."""
LONGEST_SECONDS: Final = 10.0
"""For a whole answer, however slowly it trickles in."""
LARGEST_BYTES: Final = 512 * 1024  # of metadata or keys, which are some kB
METADATA_SECONDS: Final = 3600.0  # they seldom change; keys are asked for sooner
DISCOVERY: Final = "/.well-known/openid-configuration"


@dataclass(frozen=True)
class Metadata:
    """What an issuer says of itself (OpenID Connect Discovery 1.0)."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class Issuer:
    """One issuer. Connects at the first question; safe to share between threads."""

    def __init__(self, settings: OidcSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.host = urlsplit(settings.issuer).hostname
        self._clock = clock
        self._lock = threading.Lock()
        self._metadata: tuple[float, Metadata] | None = None
        self.keys = KeyCache(self._fetch_keys, clock=clock)

    def metadata(self) -> Metadata:
        """Discovery document, kept for an hour; ``UnavailableError``."""
        with self._lock:
            if self._metadata is not None and self._clock() - self._metadata[0] < METADATA_SECONDS:
                return self._metadata[1]
        found = self._ask("GET", self.settings.issuer.rstrip("/") + DISCOVERY)
        if found.get("issuer") != self.settings.issuer:
            raise self._away("its discovery document is of another issuer")
        try:
            names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            metadata = Metadata(*(check_address(str(found[name])) for name in names))
        except (KeyError, ValueError):
            raise self._away("its discovery document lacks addresses, or has some without https") from None
        with self._lock:
            self._metadata = (self._clock(), metadata)
        return metadata

    def sign_in_address(self, state: str, nonce: str, challenge: str) -> str:
        """Where a browser goes to sign in: authorization code flow with PKCE (RFC 7636, S256)."""
        address = self.metadata().authorization_endpoint
        asked = urlencode({
            "response_type": "code", "client_id": self.settings.client_id,
            "redirect_uri": self.settings.redirect_uri, "scope": " ".join(self.settings.scopes), "state": state,
            "nonce": nonce, "code_challenge": challenge, "code_challenge_method": "S256",
        })
        return f"{address}{'&' if urlsplit(address).query else '?'}{asked}"

    def id_token(self, code: str, verifier: str) -> str:
        """Text of the ID token for a code; ``UnauthenticatedError`` where the issuer does not take the code."""
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": self.settings.redirect_uri,
            "client_id": self.settings.client_id, "code_verifier": verifier,
        }
        found = self._ask("POST", self.metadata().token_endpoint, form=form, secret=self._client_secret())
        text = found.get("id_token")
        if not isinstance(text, str):
            raise UnauthenticatedError(NOT_KNOWN)
        return text

    def _client_secret(self) -> str | None:
        file = self.settings.client_secret_file
        try:
            return None if file is None else file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise UnavailableError(f"the client's secret {file} cannot be read: {error}") from None

    def _fetch_keys(self) -> Sequence[PublicKey]:
        try:
            return read_keys(self._ask("GET", self.settings.jwks_url or self.metadata().jwks_uri))
        except ValueError:
            raise self._away("what it gives as its keys is no set of keys") from None

    def _ask(
        self, method: str, address: str, *, form: Mapping[str, str] | None = None, secret: str | None = None
    ) -> dict[str, Any]:
        """JSON object of an address. No redirect is followed, and no more is read than such an object takes."""
        # RFC 6749, section 2.3.1: both halves of the basic authentication are form-encoded first.
        login = None if secret is None else (quote(self.settings.client_id, safe=""), quote(secret, safe=""))
        body, began = b"", time.monotonic()
        try:
            with (
                httpx.Client(verify=self._trust(), timeout=TIMEOUT_SECONDS) as client,
                client.stream(method, address, data=form, auth=login, headers={"Accept": "application/json"}) as answer,
            ):
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > LARGEST_BYTES:
                        raise self._away("its answer is too long")
                    if time.monotonic() - began > LONGEST_SECONDS:
                        raise self._away("its answer takes too long")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ImportError, ValueError) as error:
            # The last two: the environment names a proxy that cannot be used (``ALL_PROXY=socks5://...``).
            raise self._away(type(error).__name__) from None
        if form is not None and answer.status_code in (400, 401, 403):
            raise UnauthenticatedError(NOT_KNOWN)
        try:
            found = json.loads(body) if answer.status_code == 200 else None
        except (ValueError, RecursionError):  # the second: nested more deeply than JSON is read
            found = None
        if not isinstance(found, dict):
            raise self._away(f"its answer, of status {answer.status_code}, is no JSON object")
        return found

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=None if self.settings.ca_file is None else str(self.settings.ca_file))

    def _away(self, why: str) -> UnavailableError:
        return UnavailableError(f"the issuer {self.host} cannot be asked: {why}", code="issuer_unavailable")
