"""A version is believed only whole: signed as it stands, with the certificate file that it names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.keys.key_chain import SignatureError
from services.contracts.keys.signed_documents import signature_of, signed_digest
from services.contracts.keys.signing import new_seed_file
from services.contracts.wire.codec import digest
from services.verification.proof import NotProvenError, Proof
from services.verification.version import NoCertificateError, proof_lines, verify_version

DATA = b"no certificate at all"


@pytest.fixture
def key_and_document(tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """The OEM's key, and a signed document that names a file."""
    seed = tmp_path / "coordinator.nk"
    key = new_seed_file(seed)
    document: dict[str, Any] = {
        "name": "pump", "version": "", "certificate_sha256": digest(DATA), "signed_by": key, "weights": [[0.5, -0.0]],
        "created_at": "2030-01-01T00:00:00+00:00",
    }
    return key, document | {"signature": signature_of(document, seed)}


def test_a_file_that_the_version_does_not_name_is_not_read(key_and_document: tuple[str, dict[str, Any]]) -> None:
    key, document = key_and_document
    for trusted in (key, None):
        with pytest.raises(NotProvenError, match="its SHA-256 is another"):
            verify_version(document, DATA + b".", trusted)
        with pytest.raises(InvalidInputError, match="put it beside the version as certificate.npz"):
            verify_version(document, None, trusted)


def test_the_signature_is_checked_before_anything_else(
    key_and_document: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    key, document = key_and_document
    for changed in (
        {"weights": [[0.5, 0.0]]}, {"certificate_sha256": ""}, {"name": "valve"}, {"more": 1}, {"rounds": math.inf},
    ):
        with pytest.raises(SignatureError, match="changed after the OEM signed it"):
            verify_version(document | changed, None, key)
    for unsigned in ({"signature": ""}, {"signature": None}):
        with pytest.raises(SignatureError, match="is not signed"):
            verify_version(document | unsigned, DATA, key)
    with pytest.raises(SignatureError, match="not by the OEM's key"):
        verify_version(document, DATA, new_seed_file(tmp_path / "other.nk"))
    for signed_by in (None, [key], {"key": key}, 7):
        with pytest.raises(SignatureError, match="not by the OEM's key"):
            verify_version(document | {"signed_by": signed_by}, DATA, key)


def test_a_number_given_later_is_under_no_signature(key_and_document: tuple[str, dict[str, Any]]) -> None:
    key, document = key_and_document
    with pytest.raises(NotProvenError):
        verify_version(document | {"version": "7"}, b"", key)
    assert signed_digest(document) == signed_digest(document | {"version": "7", "signature": "x"})
    assert signed_digest(document) != signed_digest(document | {"signed_by": "x"})


def test_a_version_without_a_certificate_is_neither_proven_nor_refuted() -> None:
    for document in ({}, {"certificate_sha256": None}, {"certificate_sha256": ""}):
        with pytest.raises(NoCertificateError, match="or those of its run do not prove its bounds"):
            verify_version(document, DATA, None)


def test_what_is_proven_is_told_of_the_weights_that_it_is_of() -> None:
    proof = Proof(0.5, 0.25, 0.5, ("a",), ("b",))
    lines = proof_lines(proof)
    assert lines == [
        "proven: the risk of these weights is at most 0.5",
        "proven: no weights have a risk below 0.25; relative gap at most 0.5", "checked: a", "not checked: b",
    ]
    (_, rounded, *_rest) = proof_lines(Proof(0.5, -1.8e-307, 1.0, (), ()))
    assert rounded == "proven: no weights have a risk below 0; relative gap at most 1"
    assert proof_lines(proof, coupled=True)[0].endswith("the weights before their coupling is at most 0.5")
