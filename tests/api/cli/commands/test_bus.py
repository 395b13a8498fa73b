"""`ballast bus serve`: a folder that is none of a server's is refused, and what a former server left is taken away."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from api.cli.commands import bus
from api.cli.main import main
from services.contracts.keys.signing import new_seed_file
from services.round_store.database.session import Database, make_engine
from services.round_store.store import RoundStore


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


def test_the_number_of_a_server_that_is_gone_is_none_of_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, new_sqlite: Callable[[], str]
) -> None:
    """Another server of this host may have the number by now, and would be told of the users in its place."""
    folder, found = tmp_path / "cluster", "import pathlib, sys; sys.exit(len(list(pathlib.Path().glob('*.pid'))))"
    assert main(["bus", "init", str(folder), "--server", "one=localhost"]) == 0
    (folder / "one" / "nats.pid").write_text("1")
    address, key = new_sqlite(), new_seed_file(tmp_path / "plant.nk")
    monkeypatch.setenv("BALLAST_DATABASE_URL", address)
    with closing(RoundStore(Database(make_engine(address)))) as store:
        store.sites.enrol("plant-1", key)
    monkeypatch.setattr(bus, "command", lambda _: [sys.executable, "-c", found])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    capsys.readouterr()
    assert main(["bus", "serve", str(folder / "one"), "--home", str(tmp_path / "home")]) == 1
    assert capsys.readouterr().err == "ballast: nats-server ended by itself with exit code 0\n"
    assert key in (folder / "one" / "users.conf").read_text(), "whom the store lets in, the server begins with"
