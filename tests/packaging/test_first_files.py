"""The files of a deployment in parts are made by the next start where one was killed while it made them."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.cli.processes import first_files
from services.bus import cluster
from services.bus.configuration import write_atomically

SERVERS = ["--servers", "nats-1,nats-2"]


@pytest.mark.parametrize("at", ["the servers", "the API", "the passwords"])
def test_a_start_that_was_killed_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], at: str
) -> None:
    folder, left = tmp_path / "files", [0]

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def killed_later(path: Path, text: str) -> None:
        write_atomically(path, text)
        left[0] += 1
        if left[0] == 2:
            killed()

    place, name = {
        "the servers": (cluster, "update_users"), "the API": (first_files, "ensure_certificates"),
        "the passwords": (first_files, "write_atomically"),
    }[at]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(place, name, killed_later if at == "the passwords" else killed)
        first_files.main([str(folder), *SERVERS])
    assert (folder / "nats").exists() == (at != "the servers") and not first_files.are_made(folder)
    seed = (folder / "nats" / "coordinator.nk").read_bytes() if at == "the API" else b""
    code = first_files.main([str(folder), *SERVERS])
    if at == "the passwords":  # a database may know one: nothing is made over it
        assert code == 1 and "holds the files of a cluster already" in capsys.readouterr().err
        return
    assert code == 0 and first_files.are_made(folder)
    assert not seed or (folder / "nats" / "coordinator.nk").read_bytes() == seed
    assert not (folder / ".nats-in-the-making").exists()
    assert {path.name for path in (folder / "nats").iterdir() if path.is_dir()} == {"nats-1", "nats-2"}


@pytest.mark.parametrize("names", [("other",), ("nats-1",), ("nats-1", "nats-2", "nats-3")])
def test_servers_of_other_names_are_not_gone_on_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]
) -> None:
    cluster.make_cluster(tmp_path / "nats", [cluster.read_server(f"{name}={name}") for name in names])
    assert first_files.main([str(tmp_path), *SERVERS]) == 1
    assert "holds the files of a cluster already" in capsys.readouterr().err
