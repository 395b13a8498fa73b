"""The public keys of an issuer: kept for an hour, asked for again when a token names one that is not there."""

from __future__ import annotations

import base64
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from services.contracts.errors import UnavailableError
from services.identity.errors import UnauthenticatedError

LOG = logging.getLogger("ballast.identity")
KEYS_SECONDS: Final = 3600.0
"""After so long the keys are asked for again, so that one that the issuer has withdrawn ends."""
GRACE_SECONDS: Final = 24 * 3600.0
"""So long the keys hold while the issuer is away."""
REFRESH_SECONDS: Final = 15.0
"""How often at most an unknown key makes us ask: tokens cost nothing to make up."""
RETRY_SECONDS: Final = 5.0
"""How soon the issuer is asked again after it did not answer."""
KEPT_RETRY_SECONDS: Final = 60.0
"""How soon where the known keys do: whoever asks may wait until the issuer's time is up."""
SMALLEST_RSA_BITS: Final = 2048  # of RFC 7518, section 3.3
NOT_KNOWN: Final = "this token does not hold"
PublicKey = RSAKey | ECKey
_CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


def read_keys(document: Mapping[str, Any]) -> list[PublicKey]:
    """Keys of a JWK set (RFC 7517) that signatures can be checked with; others are left out, as section 5 wants.

    :class:`ValueError` where it is no such set.
    """
    entries = document.get("keys")
    if not isinstance(entries, list):
        raise ValueError("this is no set of keys")
    keys: list[PublicKey] = []
    for entry in entries:
        kind = entry.get("kty") if isinstance(entry, dict) else None
        if kind not in ("RSA", "EC") or "d" in entry or entry.get("use", "sig") != "sig":
            continue
        try:
            if kind == "EC" or _modulus_bits(entry) >= SMALLEST_RSA_BITS:
                keys.append(RSAKey.import_key(entry) if kind == "RSA" else ECKey.import_key(entry))
        except (JoseError, ValueError, TypeError, KeyError):
            continue
    return keys


def _modulus_bits(entry: Mapping[str, Any]) -> int:
    text = str(entry["n"])
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big").bit_length()


def fits(key: PublicKey, algorithm: str) -> bool:
    """Whether a key is of an algorithm: its kind, its curve, and what it says of itself."""
    if key.alg not in (None, algorithm):
        return False
    if algorithm.startswith("ES"):
        return isinstance(key, ECKey) and key.get("crv") == _CURVES[algorithm]
    return isinstance(key, RSAKey)


class KeyCache:
    """Keys of one issuer. Safe to share between threads: one asks, and nobody waits for it whose key is known.

    Nor does anybody wait for an issuer that did not answer a moment ago. It may hang as long as it likes: its callers
    would have all threads of the API otherwise, and with them those whose tokens are no matter of the issuer's.
    """

    def __init__(
        self, fetch: Callable[[], Sequence[PublicKey]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._asking = threading.Lock()
        self._keys: Sequence[PublicKey] = ()
        self._fetched = -math.inf
        self._asked = -math.inf
        self._failure = ""

    def find(self, kid: str | None, algorithm: str) -> PublicKey:
        """Key of a token's header; without a ``kid`` the only one that fits.

        Raises
        ------
        UnauthenticatedError
            When the issuer has no such key.
        UnavailableError
            When the issuer cannot be asked, and what is kept does not do.
        """
        found = self._among(kid, algorithm)
        if self._age() >= KEYS_SECONDS:
            kept = len(found) == 1 and self._age() < GRACE_SECONDS
            self._ask(KEPT_RETRY_SECONDS if kept and self._failure else RETRY_SECONDS, wait=not kept)
            if self._age() >= GRACE_SECONDS:
                raise UnavailableError(self._failure, code="issuer_unavailable")
            found = self._among(kid, algorithm)
        if len(found) != 1:
            self._ask(RETRY_SECONDS if self._failure else REFRESH_SECONDS, wait=True)
            found = self._among(kid, algorithm)
        if len(found) != 1:
            if self._failure:
                raise UnavailableError(self._failure, code="issuer_unavailable")
            named = "which names no key" if kid is None else "with its key id"
            LOG.info("a token of the issuer does not hold: %d of the issuer's keys fit it, %s", len(found), named)
            raise UnauthenticatedError(NOT_KNOWN)
        return found[0]

    def _age(self) -> float:
        return self._clock() - self._fetched

    def _among(self, kid: str | None, algorithm: str) -> list[PublicKey]:
        return [key for key in self._keys if fits(key, algorithm) and (kid is None or key.kid == kid)]

    def _ask(self, pause: float, *, wait: bool) -> None:
        """Ask the issuer, unless it was asked a moment ago; where another is at it, wait for the answer, or do not."""
        if not self._asking.acquire(blocking=wait and not self._failure):
            return
        try:
            began = self._clock()
            if began - self._asked < pause:
                return
            try:
                self._keys = self._fetch()
                self._fetched = self._clock()
                self._failure = ""  # the last: who reads it meanwhile finds the keys there
            except UnavailableError as error:
                self._failure = str(error)
            finally:
                self._asked = self._clock()  # a pause begins when the answer is there, however long it took
        finally:
            self._asking.release()
