"""``ballast verify`` of what cannot be proven: one line, and nothing that would look like a proof."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.cli.commands import verify
from api.cli.main import main
from services.contracts.keys.signed_documents import signature_of
from services.contracts.keys.signing import new_seed_file
from services.process.settings import Settings
from services.verification.bundle import VersionFiles


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


def test_a_version_without_a_certificate_is_held_to_the_key_that_is_given_and_saved_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plants diagnose by it; one that the key did not sign is saved nowhere."""
    settings, seed = Settings.model_validate({"home": tmp_path}), tmp_path / "other.nk"
    document: dict[str, Any] = {"name": "pumps", "version": "1", "signed_by": new_seed_file(seed)}
    files = VersionFiles(document | {"signature": signature_of(document, seed)}, None)
    monkeypatch.setattr(verify, "open_backend", lambda _: nullcontext(SimpleNamespace(settings=settings)))
    monkeypatch.setattr(verify, "version_files", lambda *_: files)
    asked = ["pumps:1", "--home", str(tmp_path), "--save", str(tmp_path / "saved")]
    assert main(["verify", *asked]) == 2, "a host without a key of its own"
    assert "carries no certificate file" in capsys.readouterr().err
    for file in (tmp_path / "saved").iterdir():
        assert file.read_bytes() == files.parts()[file.name]
        file.unlink()
    (tmp_path / "saved").rmdir()
    settings.bus_folder.mkdir()
    own = new_seed_file(settings.nats_seed)
    for key in ([], ["--oem-key", own]):
        assert "sign" in refused(capsys, *asked, *key) and not (tmp_path / "saved").exists()
    assert main(["verify", *asked, "--oem-key", document["signed_by"]]) == 2
    names = {file.name for file in (tmp_path / "saved").iterdir()}
    assert names == set(files.parts()) == {"model.json", "oem-keys.json"}
