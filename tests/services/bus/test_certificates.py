"""The certificate of an embedded server is made once, and bears every name by which the settings say it is found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from services.bus.certificates import ensure_certificates, make_certificates
from services.bus.configuration import TlsFiles
from services.contracts.errors import ConflictError


def test_it_is_kept_for_names_that_it_bears(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path)
    ensure_certificates(files, ["oem.example", "127.0.0.1", "::1"])
    made = files.certificate.read_bytes()
    ensure_certificates(files, ["0:0:0:0:0:0:0:1", "oem.example"])
    assert files.certificate.read_bytes() == made


def test_it_holds_for_who_is_hours_behind(tmp_path: Path) -> None:
    """A plant whose clock is behind enrols on the day that the certificates are made, too."""
    files = TlsFiles(tmp_path)
    ensure_certificates(files, ["localhost"])
    for path in (files.authority, files.certificate):
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        assert certificate.not_valid_before_utc <= datetime.now(UTC) - timedelta(hours=12)
        assert certificate.not_valid_after_utc - certificate.not_valid_before_utc <= timedelta(days=825)


def test_a_name_that_it_does_not_bear_is_refused_with_what_to_do(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path)
    ensure_certificates(files, ["localhost", "127.0.0.1"])
    made = files.certificate.read_bytes()
    refused = r"made without the name oem\.example, 10\.0\.0\.7: .*delete ca\.pem"
    with pytest.raises(ConflictError, match=refused) as said:
        ensure_certificates(files, ["localhost", "oem.example", "10.0.0.7"])
    assert str(tmp_path) in str(said.value)
    assert files.certificate.read_bytes() == made, "nothing was made or lost"
    files.certificate.unlink()
    ensure_certificates(files, ["localhost", "oem.example", "10.0.0.7"])


def test_the_authority_signs_servers_and_no_further_authority(tmp_path: Path) -> None:
    """A server's certificate must not stand for an authority: its key lies on a host that is on the network."""
    files = TlsFiles(tmp_path)
    ensure_certificates(files, ["localhost"])
    authority, server = (
        x509.load_pem_x509_certificate(path.read_bytes()) for path in (files.authority, files.certificate)
    )
    server.verify_directly_issued_by(authority)
    of_authority, of_server = (
        each.extensions.get_extension_for_class(x509.BasicConstraints) for each in (authority, server)
    )
    assert of_authority.critical and of_authority.value == x509.BasicConstraints(ca=True, path_length=0)
    assert of_server.critical and of_server.value == x509.BasicConstraints(ca=False, path_length=None)
    usage = authority.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical and usage.value.key_cert_sign and usage.value.crl_sign


def test_a_server_is_no_client_unless_it_has_peers(tmp_path: Path) -> None:
    for peers, uses in ((False, [ExtendedKeyUsageOID.SERVER_AUTH]),
                        (True, [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])):
        folder = tmp_path / str(peers)
        folder.mkdir()
        files = TlsFiles(folder)
        make_certificates([(files, ["localhost"])], "plant link", peers=peers)
        server = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        assert list(server.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == uses


def test_the_key_is_readable_to_its_owner_alone(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path)
    ensure_certificates(files, ["localhost"])
    assert files.key.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("lost", ["authority", "key", "certificate"])
def test_where_one_of_the_three_files_is_lost_all_are_made_anew_together(tmp_path: Path, lost: str) -> None:
    files = TlsFiles(tmp_path)
    ensure_certificates(files, ["localhost"])
    before = files.certificate.read_bytes()
    getattr(files, lost).unlink()
    ensure_certificates(files, ["localhost"])
    authority, server = (
        x509.load_pem_x509_certificate(path.read_bytes()) for path in (files.authority, files.certificate)
    )
    server.verify_directly_issued_by(authority)
    assert files.certificate.read_bytes() != before and files.key.exists()
