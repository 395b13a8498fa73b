"""A version's signature: the coordinator's key over all that the version says, but for its number."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from services.contracts.errors import ConflictError
from services.contracts.keys.key_chain import KeyStatement, SignatureError, check_warrant, warrants
from services.contracts.keys.signing import check_public_key, public_key, signer, verify

UNSIGNED = ("signature", "version")
"""Not covered: the signature itself, and the number that the registry gives afterwards."""


def signed_bytes(document: Mapping[str, Any]) -> bytes:
    """What a signature covers: the document as JSON with sorted keys, floats in their shortest exact form."""
    covered = {name: value for name, value in document.items() if name not in UNSIGNED}
    return json.dumps(covered, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def signature_of(document: Mapping[str, Any], seed_file: Path) -> str:
    """Signature (base 64) by a seed file; ``document["signed_by"]`` must be its public key already.

    :class:`ConflictError` where it is another.
    """
    if document.get("signed_by") != public_key(seed_file):
        raise ConflictError("a document is signed by the key that it names")
    return base64.b64encode(signer(seed_file)(signed_bytes(document))).decode()


def signed_digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of what a signature covers, hexadecimal: by it a version stands when its key is revoked as stolen."""
    return hashlib.sha256(signed_bytes(document)).hexdigest()


def check_signature(document: Mapping[str, Any], key: str, statements: Sequence[KeyStatement] = ()) -> str:
    """Refuse a version that the OEM, whose ``key`` is trusted, did not sign as it stands; the key that signed it.

    ``statements`` tell which keys came before and after that one (:mod:`services.contracts.keys.key_chain`).

    Raises
    ------
    SignatureError
        Unsigned, signed by a key that may not vouch for it, or changed since.
    InvalidInputError
        ``key`` is not a public key.
    """
    check_public_key(key)
    signature, signer_key = document.get("signature"), str(document.get("signed_by"))
    if not signature:
        raise SignatureError("the version is not signed; ask the OEM for the file of a signed one")
    line = warrants(key, statements)
    if signer_key not in line:
        raise SignatureError(f"the version is signed by {signer_key[:56]}, not by the OEM's key {key}")
    try:
        raw = base64.b64decode(str(signature), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    try:
        covered = signed_bytes(document)
    except ValueError:  # no signature is over a number that JSON has no form for, such as 1e999
        raise SignatureError("the version was changed after the OEM signed it: it has a number beyond all") from None
    if not verify(signer_key, covered, raw):
        raise SignatureError("the version was changed after the OEM signed it: the signature does not hold")
    check_warrant(line[signer_key], signer_key, document.get("created_at"), covered)
    return signer_key
