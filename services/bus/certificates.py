"""A private certificate authority for an embedded server, made once and kept."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from services.bus.configuration import TlsFiles, write_atomically
from services.contracts.errors import ConflictError

LIFETIME = timedelta(days=825)  # the longest that common TLS stacks accept of a server certificate
CLOCKS = timedelta(days=1)  # by which a plant's clock may be behind on the day that certificates are made


def ensure_certificates(files: TlsFiles, host_names: Sequence[str], server_of: str = "plant link") -> None:
    """Make an authority and a server certificate for the host names or addresses, unless they are there already.

    The authority's key is used once and thrown away: nobody can sign a second server with it. To renew, delete the
    three files and give the sites the new ``ca.pem``. ``ConflictError`` where the certificate that is there does not
    bear one of the names: whoever comes by that name would refuse it.
    """
    if not (files.authority.exists() and files.certificate.exists() and files.key.exists()):
        make_certificates([(files, host_names)], server_of)
        return
    certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    bears = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    missing = [name for name in host_names if _general_name(name) not in bears]
    if missing:
        raise ConflictError(
            f"the certificate of the {server_of} in {files.certificate.parent} was made without the name "
            f"{', '.join(missing)}: stop the service, delete ca.pem, server.pem and server.key there and start again; "
            "plants that are enrolled already need the new ca.pem",
            code="certificate_without_name",
        )


def make_certificates(
    servers: Sequence[tuple[TlsFiles, Sequence[str]]], server_of: str, *, peers: bool = False
) -> None:
    """Make one authority and a certificate of it for each server and its host names or addresses.

    With ``peers`` the servers connect to one another too, and show the same certificates there.
    """
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Ballast {server_of} authority")])
    now = datetime.now(UTC)
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(sign_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if peers else [])]
    for files, host_names in servers:
        server_key = ec.generate_private_key(ec.SECP256R1())
        server = (
            _builder(
                x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Ballast {server_of}")]),
                authority_name, server_key.public_key(), now,
            )
            .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in host_names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
            .sign(authority_key, hashes.SHA256())
        )
        key_text = server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        write_atomically(files.key, key_text)
        write_atomically(files.certificate, _pem(server))
        write_atomically(files.authority, _pem(authority))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS)
        .not_valid_after(now - CLOCKS + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=sign_certificates, crl_sign=sign_certificates, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


