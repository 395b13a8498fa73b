"""What an error of the link means: hopeless, a key within its grace, an answer not taken, a way that is shut."""

from __future__ import annotations

import ssl
import time
from datetime import UTC, datetime
from typing import Final

from services.contracts.errors import BallastError
from services.contracts.keys.signing import public_key
from services.process.nats_client import OpenConnectionError, StrangeServerError
from services.site_agent.connection.link_address import Address, KeyRefusedError, LinkError

_OF_THE_CLOCK: Final = frozenset({9, 10})  # OpenSSL's numbers for a certificate that does not hold yet, and no more
KEY_GRACE_SECONDS = 3.0
"""A key that was enrolled a moment ago may not have reached the server yet: so long a refused key is tried again."""


class Hopeless:
    """Tells the failures that no further try can mend from those that may pass."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._refused_since: float | None = None

    def accepted(self) -> None:
        """The server took the key: a later refusal has its grace again."""
        self._refused_since = None

    def of(self, error: Exception, *, was_connected: bool) -> LinkError | None:
        """Failure that ends the agent, None for one that may pass. ``was_connected``: a certificate fitted once."""
        if is_key_refused(error):
            return self._of_key()
        text = str(error).lower()
        own = (f'publish to "{self._address.hello_subject}"', f'subscription to "{self._address.task_subject}"')
        if "permissions violation" in text and any(subject in text for subject in own):
            return KeyRefusedError(
                f"the server knows this key, but not as site {self._address.site_id}: {text.removeprefix('nats: ')}"
            )
        if isinstance(error, OpenConnectionError) and not was_connected:
            return LinkError(str(error))
        error = getattr(error, "certificate_error", error)  # as aiohttp tells it
        if isinstance(error, ssl.SSLCertVerificationError) and not was_connected:
            return LinkError(f"the server's certificate does not fit ({error.verify_message}); {_todo(error)}")
        return None

    def _of_key(self) -> LinkError | None:
        now = time.monotonic()
        self._refused_since = self._refused_since if self._refused_since is not None else now
        if now - self._refused_since < KEY_GRACE_SECONDS:
            return None
        if (following := _key_of(self._address)) not in (None, self._address.public_key):
            return KeyRefusedError(
                f"the server does not accept the key {self._address.public_key} any more, with which this agent began; "
                f"its site has {following} now: start the agent again"
            )
        return KeyRefusedError(
            f"the server does not accept this site's key {self._address.public_key}: "
            f"ask the OEM to enrol it for site {self._address.site_id}, or to activate the site if it is suspended"
        )


def _key_of(address: Address) -> str | None:
    """Key that the site's file has now; None where it cannot be read."""
    try:
        return public_key(address.seed_file)
    except BallastError:
        return None


def _todo(error: ssl.SSLCertVerificationError) -> str:
    """What to do about a certificate; one is judged by this machine's clock, which may be the one that is wrong."""
    if error.verify_code not in _OF_THE_CLOCK:
        return "ca in the settings must be the file that the OEM gave out"
    return (f"this machine's clock says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC: set it (`timedatectl status`); "
            "where it is right, the OEM's certificate is to be renewed (`ballast doctor` there)")


def is_of_the_way(error: Exception) -> bool:
    """Whether a WebSocket's way to the server is shut, as by a proxy that asks for another password."""
    return type(error).__module__.startswith("aiohttp.")


def said_of_the_way(error: Exception, *, through_proxy: bool) -> str:
    """Why no server is reached, for the log: what answers in its place, or the proxy's words; empty where none did."""
    if is_of_the_way(error) and type(error).__name__ == "WSServerHandshakeError":
        return f" (what answers there says HTTP {getattr(error, 'status', 'of no status')}, and opens no WebSocket)"
    return f" ({error})" if through_proxy or isinstance(error, StrangeServerError) else ""


def is_key_refused(error: Exception) -> bool:
    """Whether the server does not know the key, or not yet; not where a slow line showed it too late."""
    text = str(error).lower()
    if is_of_the_way(error) or "authentication timeout" in text:
        return False
    return "authorization violation" in text or "authentication" in text


def is_answer_refused(error: Exception) -> bool:
    """Whether the server did not take an answer: it knows no more that the site was asked.

    A site may publish its hello, of which a refusal is hopeless, and answers.
    """
    return "permissions violation for publish" in str(error).lower()
