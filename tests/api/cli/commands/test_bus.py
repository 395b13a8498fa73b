"""`ballast bus serve`: a folder that is none of a server's is refused before a server starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.cli.main import main


@pytest.mark.parametrize("gone", ["server.pem", "nats.conf"])
def test_a_folder_that_lost_a_file_is_refused_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gone: str
) -> None:
    folder = tmp_path / "cluster"
    assert main(["bus", "init", str(folder), "--server", "one=localhost"]) == 0
    (folder / "one" / gone).unlink()
    capsys.readouterr()
    assert main(["bus", "serve", str(folder / "one"), "--home", str(tmp_path / "home")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"one has no {gone}; `ballast bus init` makes a server's folder")
