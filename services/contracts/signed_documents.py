"""A version's signature: the coordinator's key over all that the version says, but for its number."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.contracts.errors import ConflictError
from services.contracts.signing import check_public_key, public_key, signer, verify

UNSIGNED = ("signature", "version")
"""Not covered: the signature itself, and the number that the registry gives afterwards."""


class SignatureError(ConflictError):
    """A version that the OEM did not sign as it stands."""

    code = "bad_signature"


def signed_bytes(document: Mapping[str, Any]) -> bytes:
    """What a signature covers: the document as JSON with sorted keys, floats in their shortest exact form."""
    covered = {name: value for name, value in document.items() if name not in UNSIGNED}
    return json.dumps(covered, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def signature_of(document: Mapping[str, Any], seed_file: Path) -> str:
    """Signature (base 64) by a seed file; ``document["signed_by"]`` must be its public key already."""
    if document.get("signed_by") != public_key(seed_file):
        raise ConflictError("a document is signed by the key that it names")
    return base64.b64encode(signer(seed_file)(signed_bytes(document))).decode()


def check_signature(document: Mapping[str, Any], key: str) -> None:
    """Refuse a version that the holder of ``key`` (U..., 56 characters) did not sign as it stands.

    Raises
    ------
    SignatureError
        Unsigned, signed by another key, or changed since.
    InvalidInputError
        ``key`` is not a public key.
    """
    check_public_key(key)
    signature, signed_by = document.get("signature"), document.get("signed_by")
    if not signature:
        raise SignatureError("the version is not signed; ask the OEM for the file of a signed one")
    if signed_by != key:
        raise SignatureError(f"the version is signed by {str(signed_by)[:56]}, not by the OEM's key {key}")
    try:
        raw = base64.b64decode(str(signature), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if not verify(key, signed_bytes(document), raw):
        raise SignatureError("the version was changed after the OEM signed it: the signature does not hold")
