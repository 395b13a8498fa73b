"""``ballast verify`` of what cannot be proven: one line, and nothing that would look like a proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.cli.main import main
from services.contracts.keys.signing import new_seed_file


def refused(capture: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command that must fail."""
    capture.readouterr()
    assert main(["verify", *arguments]) == 1
    said = capture.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


def test_a_certificate_alone_has_no_signature_that_a_key_could_be_held_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key would be passed over, and what was proven would look as if it were the OEM's."""
    file = tmp_path / "certificate.npz"
    key = new_seed_file(tmp_path / "oem.nk")
    assert "a signature is of a version: give the folder" in refused(capsys, "--file", str(file), "--oem-key", key)
    assert "cannot be read: No such file" in refused(capsys, "--file", str(file))
    file.write_bytes(b"nothing")
    assert "certificate" in refused(capsys, "--file", str(file))


@pytest.mark.parametrize("key", ["word", "U" * 56, ""])
def test_what_is_no_public_key_is_said_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    assert "public key" in refused(capsys, "--file", str(tmp_path / "nowhere"), "--oem-key", key)


def test_files_that_are_there_are_saved_nowhere_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder would not be made, and nothing would say so."""
    assert "give MODEL, not --file" in refused(capsys, "--file", str(tmp_path), "--save", str(tmp_path / "elsewhere"))
