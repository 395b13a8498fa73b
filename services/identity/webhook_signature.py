"""How a webhook's receiver knows who sent it: HMAC-SHA256 over the time and the body, with a secret of that webhook.

The secret follows from a key in the home folder and the webhook's id, so the database holds none.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from services.contracts.errors import InvalidInputError

SIGNATURE = "Ballast-Signature"
TIMESTAMP = "Ballast-Timestamp"
TOLERANCE_SECONDS = 300
"""A message that is older is not believed: somebody may have kept it."""
_SECONDS = re.compile("[0-9]{1,15}")
"""A time that a number holds: who sends the header may write any."""


def secret_of(key: bytes, webhook_id: str) -> str:
    """Secret of a webhook, as it is shown to who adds it."""
    return f"whsec_{hmac.new(key, f'webhook:{webhook_id}'.encode(), hashlib.sha256).hexdigest()}"


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Header ``Ballast-Signature``: ``v1=`` and the hexadecimal HMAC-SHA256 of ``<timestamp>.<body>``."""
    return "v1=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def check_signature(secret: str, timestamp: str, body: bytes, given: str, now: float) -> None:
    """What a receiver does; ``InvalidInputError`` for a message that was changed, was kept, or is somebody else's."""
    if not _SECONDS.fullmatch(timestamp) or abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        raise InvalidInputError("the message is too old, or from the future")
    if not hmac.compare_digest(signature(secret, int(timestamp), body).encode(), given.encode("utf-8", "replace")):
        raise InvalidInputError("the signature is not that of this message and this secret")
