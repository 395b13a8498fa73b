"""A version as a whole: its signature, its certificate file, and that the two belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.contracts.errors import BallastError, InvalidInputError
from services.contracts.keys.key_chain import KeyStatement
from services.contracts.keys.signed_documents import check_signature
from services.contracts.wire.codec import digest
from services.verification.certificate_file import CertificateFile, read_certificate
from services.verification.proof import ACCURACY, NotProvenError, Proof, belongs, verify

CERTIFICATE = "certificate.npz"
"""Name of the file beside a version's document."""


class NoCertificateError(BallastError):
    """A version without a certificate file: nothing was refuted, and nothing proven."""

    code = "no_certificate"


def verify_version(
    document: Mapping[str, Any], data: bytes | None, key: str | None, statements: Sequence[KeyStatement] = ()
) -> tuple[CertificateFile, Proof, list[str]]:
    """Certificate, what it proves, and lines that say so; ``key`` None: the signature stays unchecked.

    ``statements``: which keys the OEM had before and after that one.

    Raises
    ------
    NoCertificateError
        The version carries no certificate file.
    SignatureError
        The version is not the one that the OEM signed.
    NotProvenError
        A claim does not follow, or the file is not that of this version.
    """
    signed_by = None if key is None else check_signature(document, key, statements)
    named = str(document.get("certificate_sha256") or "")
    if not named:
        raise NoCertificateError(
            "the version carries no certificate file: it is of a network, which has none, or from before there were "
            "any, its method leaves no cuts, or those of its run do not prove its bounds (then the run's log says why)"
        )
    if data is None:
        raise InvalidInputError(f"the version names a certificate file; put it beside the version as {CERTIFICATE}")
    if digest(data) != named:
        raise NotProvenError("the certificate file is not the one that the version names: its SHA-256 is another")
    certificate = read_certificate(data)
    try:
        belongs(certificate, document)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InvalidInputError(
            "the document is not that of a version: a part of its certificate is missing, or no number where one is due"
        ) from None
    proof = verify(certificate)
    name = f"{document.get('name')} version {document.get('version')}".removesuffix(" version ")
    coupled = document.get("coupling") is not None
    lines = [f"{name}, run {certificate.run_id}", *proof_lines(proof, coupled=coupled)]
    objective = float(document["objective"])
    if objective > proof.upper * (1.0 + 2.0 * ACCURACY):
        whose = f"{document.get('objective_name') or 'objective'}, of these weights {objective:.9g}"
        lines.append(f"not checked: what the version's method minimised ({whose}): it bounds the risk that is proven")
    if coupled:
        lines.append("checked: the version's planes are those of the certificate, coupled as the version says")
    if key is None:
        lines.append("not checked: the OEM's signature, for want of its public key")
    else:
        line = "" if signed_by == key else f", which {key} vouches for"
        lines.append(f"checked: the OEM's signature of the version and its certificate file, by {signed_by}{line}")
        if document.get("version"):
            lines.append("not checked: the version's number, which the registry gave after the OEM had signed")
    return certificate, proof, lines


def proof_lines(proof: Proof, *, coupled: bool = False) -> list[str]:
    """What was proven, and how, for a screen; ``coupled``: of weights from which the version's were made."""
    whose = "the weights before their coupling" if coupled else "these weights"
    return [
        f"proven: the risk of {whose} is at most {proof.upper:.9g}",
        f"proven: no weights have a risk below {max(proof.lower, 0.0):.9g}; relative gap at most {proof.gap:.3g}",
        *([f"in probability: {proof.condition}"] if proof.condition else []),
        *(f"checked: {line}" for line in proof.checked),
        *(f"not checked: {line}" for line in proof.not_checked),
    ]
