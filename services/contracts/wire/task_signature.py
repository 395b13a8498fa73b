"""Whose a task is: the OEM's signature of its bytes, in the headers of the NATS message that brings it.

Beside the frame and not in it, so that a task has the same bytes, and the same digest, whichever key signed it. An
agent of before does not look at it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Final

SIGNATURE: Final = "Ballast-Signature"
"""Header of a task's NATS message: Ed25519 over :func:`covered`, base 64."""
LINE: Final = "Ballast-OEM-Keys"
"""Header: statements of the changes of the OEM's key (``services.contracts.keys.key_chain``), JSON on one line."""
LONGEST_LINE: Final = 500_000
"""Characters of that header at most: a thousand changes of keys, or a stolen key and seven thousand versions."""
_PURPOSE: Final = b"ballast.task/1\n"


def covered(frame: bytes) -> bytes:
    """What the OEM signs of a task's frame: its SHA-256, for Ed25519 goes twice over all that it signs."""
    return _PURPOSE + hashlib.sha256(frame).digest()


def written(signature: bytes) -> str:
    """A signature as the header has it."""
    return base64.b64encode(signature).decode()


def signature_in(headers: Mapping[str, str] | None) -> bytes:
    """The signature in a message's headers; empty where there is none, or none that can be read."""
    try:
        return base64.b64decode((headers or {}).get(SIGNATURE, ""), validate=True)
    except (binascii.Error, ValueError):
        return b""
