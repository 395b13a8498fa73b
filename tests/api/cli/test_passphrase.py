"""The passphrase of a backup: where it comes from, and that who else can read its file is told of."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from api.cli.passphrase import VARIABLE, read_passphrase
from services.contracts.errors import InvalidInputError

WORD = "correct horse battery"


@pytest.mark.parametrize(("mode", "shown"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
def test_a_passphrase_file_that_others_can_read_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int, shown: bool
) -> None:
    """It is taken all the same: it may be mounted so."""
    secret = tmp_path / "word"
    secret.write_text(f"{WORD}\n")
    secret.chmod(mode)
    assert read_passphrase(secret, twice=False) == WORD
    out, err = capsys.readouterr()
    assert out == "" and WORD not in err
    told = f"ballast: note: the passphrase file {secret} has mode {mode:04o}: others"
    assert err.startswith(told) == shown == bool(err)


def test_a_passphrase_from_a_pipe_has_no_mode_to_tell_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o644)
    writer = threading.Thread(target=pipe.write_text, args=(WORD,))
    writer.start()
    assert read_passphrase(pipe, twice=False) == WORD
    writer.join()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("given", "found"), [(f"{WORD}\n", WORD), (f" {WORD} \r\nmore\n", f" {WORD} ")])
def test_the_first_line_of_the_file_comes_before_the_environment_which_no_child_inherits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, found: str
) -> None:
    (tmp_path / "word").write_bytes(given.encode())
    for file, expected in ((tmp_path / "word", found), (None, "of the environment")):
        monkeypatch.setenv(VARIABLE, "of the environment")
        assert read_passphrase(file, twice=True) == expected
        assert VARIABLE not in os.environ


@pytest.mark.parametrize("held", ["", "\n", "\r\nsecond line\n"])
def test_an_empty_first_line_is_no_passphrase_whatever_the_environment_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    (tmp_path / "word").write_bytes(held.encode())
    monkeypatch.setenv(VARIABLE, WORD)
    with pytest.raises(InvalidInputError, match="the passphrase is empty"):
        read_passphrase(tmp_path / "word", twice=False)


def test_what_is_typed_twice_must_be_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    typed: list[str] = []
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("getpass.getpass", lambda _: typed.pop(0))
    typed[:] = [WORD, WORD]
    assert read_passphrase(None, twice=True) == WORD
    typed[:] = [WORD, "another"]
    assert read_passphrase(None, twice=False) == WORD
    typed[:] = [WORD, "another"]
    with pytest.raises(InvalidInputError, match="differ; nothing was written"):
        read_passphrase(None, twice=True)
    typed[:] = ["", ""]
    with pytest.raises(InvalidInputError, match="is empty"):
        read_passphrase(None, twice=True)


def test_a_passphrase_in_another_encoding_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, os.fsdecode(b"correct horse batt\xe9ry"))
    with pytest.raises(InvalidInputError, match="the passphrase is not UTF-8 text"):
        read_passphrase(None, twice=False)
