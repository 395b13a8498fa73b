"""A certificate file is written only where it proves what the version claims, in the first form that does."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from flows import certificates
from services.verification.proof import NotProvenError

VERSION: Any = SimpleNamespace(run_id="a" * 32, method="level-bundle", spec=None, asset_type=None)


def proof(*, centred: bool = True) -> Any:
    return SimpleNamespace(plain=lambda: "plain", around_the_centre=lambda: "centred" if centred else None)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The file of these proofs, where only ``proven`` forms prove the claims of a version of so many heads."""
    def write(*proofs: Any, proven: tuple[str, ...], heads: int) -> bytes | None:
        def verify(way: tuple[str, ...]) -> None:
            if not set(way) <= set(proven):
                raise NotProvenError(f"{way[0]} proves nothing")

        monkeypatch.setattr(certificates, "verify", verify)
        monkeypatch.setattr(certificates, "_certificate", lambda _, way: way)
        monkeypatch.setattr(certificates, "write_certificate", lambda way: "+".join(way).encode())
        monkeypatch.setattr(certificates, "trained_heads", lambda *_: heads)
        return certificates.certificate_file(VERSION, proofs)

    return write


@pytest.mark.parametrize(("proven", "data"), [
    (("plain", "centred"), b"plain+plain"), (("centred",), b"centred+centred"), (("plain",), b"plain+plain"),
])
def test_the_first_form_that_proves_the_claims_is_written(written: Any, proven: tuple[str, ...], data: bytes) -> None:
    assert written(proof(), proof(), proven=proven, heads=2) == data


def test_what_proves_nothing_leaves_no_file_and_a_line_that_says_why(
    written: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ballast.flows")
    assert written(proof(), proven=(), heads=1) is None
    assert f"run {'a' * 32} leaves no certificate file: centred proves nothing" in caplog.text
    assert written(proof(), proof(centred=False), proven=("centred",), heads=2) is None, "one head has no such form"


def test_without_a_proof_of_each_head_there_is_no_file(written: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ballast.flows")
    for proofs in ((), (proof(),)):
        assert written(*proofs, proven=("plain", "centred"), heads=2) is None
    assert "level-bundle has no cuts that prove its bounds" in caplog.text
