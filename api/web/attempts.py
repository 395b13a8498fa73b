"""How often an address may show a token that does not hold."""

from __future__ import annotations

import hashlib
import ipaddress
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from services.contracts.errors import BallastError

MOST_FAILURES: Final = 10
"""Failures within the window after which an address waits: enough for a gateway that was given yesterday's token."""
WINDOW_SECONDS: Final = 60.0  # failures within it count
MOST_ADDRESSES: Final = 10_000
"""Addresses that are remembered; the longest unseen go first. A flood from more fills no memory."""
MOST_HELD: Final = 1_000
"""Tokens that held lately and are not kept waiting."""


class TooManyAttemptsError(BallastError):
    """Too many tokens that do not hold, from one address."""

    code = "too_many_attempts"


class FailedAttempts:
    """Turns an address away for a minute after ten failures in one, before its token is looked at.

    A token that held before goes on holding, whatever else comes from its address: on a host that many share nobody can
    shut out another. It is known by its SHA-256, and checked like every token.
    """

    def __init__(self, what: str = "tokens", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._held: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, client: str, header: str | None) -> None:
        """Raise :class:`TooManyAttemptsError` for an address that failed too often, unless its token held before."""
        with self._lock:
            failures = self._failures.get(_block(client))
            if failures is None or len(failures) < MOST_FAILURES or failures[0] <= self._clock() - WINDOW_SECONDS:
                return
            if header is not None and _digest(header.partition(" ")[2].strip()) in self._held:
                return
        raise TooManyAttemptsError(
            f"too many {self._what} that do not hold came from this address; try again in a minute"
        )

    def failed(self, client: str) -> None:
        """Count a failure of an address."""
        with self._lock:
            block = _block(client)
            self._failures.setdefault(block, deque(maxlen=MOST_FAILURES)).append(self._clock())
            self._failures.move_to_end(block)
            while len(self._failures) > MOST_ADDRESSES:
                self._failures.popitem(last=False)

    def held(self, token: str) -> None:
        """Remember a token that held."""
        with self._lock:
            digest = _digest(token)
            self._held[digest] = None
            self._held.move_to_end(digest)
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


@lru_cache(maxsize=1024)
def _block(client: str) -> str:
    """Address, or of IPv6 its network of 64 bits, which one customer has whole; ``::ffff:192.0.2.1`` is 192.0.2.1.

    A server or proxy that hears both kinds on one socket writes the addresses of IPv4 so: all would be one network.
    """
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client
    if isinstance(address, ipaddress.IPv4Address):
        return client
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
