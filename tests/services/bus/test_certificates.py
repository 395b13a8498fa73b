"""The certificate of an embedded server is made once, and bears every name by which the settings say it is found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from services.bus.certificates import ensure_certificates
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
