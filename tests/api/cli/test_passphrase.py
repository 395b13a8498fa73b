"""The passphrase of a backup from a file: who else can read it is told of."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from api.cli.passphrase import read_passphrase

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
