"""`ballast health`: each part is asked where it listens, and another home's part on the same port is not it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from api.cli.commands.health import PROBES
from api.cli.main import main
from api.cli.processes import listening
from services.process.process_lock import held
from services.process.settings import Settings

PORTS = {"api": 8101, "nats": 4301, "prefect": 4302, "mlflow": 5101}
ASKED = {
    "api": "http://127.0.0.1:8101/readyz", "nats": "127.0.0.1:4301",
    "prefect": "http://127.0.0.1:4302/api/health", "mlflow": "http://127.0.0.1:5101/health",
}


class Host:
    """A host on which everything answers, and what it was asked."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.owners: dict[int, Path] = {}
        self.at_work = True
        patch.setattr(listening, "answers", self.answers)
        patch.setattr(listening, "greets", lambda host, port: self.answers(f"{host}:{port}"))
        patch.setattr(listening, "other_home", lambda port, home: self.owners.get(port))

    def answers(self, address: str) -> Callable[[], bool]:
        def ready() -> bool:
            self.asked.append(address)
            return self.at_work

        return ready


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def settings(home: Path, **hosts: str) -> Settings:
    parts = {name: {"port": port, "host": hosts.get(name, "127.0.0.1")} for name, port in PORTS.items()}
    return Settings.model_validate({"home": home, **parts})


@pytest.mark.parametrize("part", sorted(PORTS))
def test_a_part_is_asked_at_its_port_and_has_to_be_of_this_home(host: Host, tmp_path: Path, part: str) -> None:
    ours = settings(tmp_path)
    assert PROBES[part](ours) and host.asked == [ASKED[part]]
    host.owners = {port: tmp_path / "other" for name, port in PORTS.items() if name != part}
    assert PROBES[part](ours)
    host.owners = {PORTS[part]: tmp_path / "other"}
    assert not PROBES[part](ours)
    host.owners, host.at_work = {}, False
    assert not PROBES[part](ours)


@pytest.mark.parametrize(("part", "listens", "asked"), [
    ("nats", "192.168.0.7", "192.168.0.7:4301"), ("nats", "0.0.0.0", "127.0.0.1:4301"),
    ("nats", "::", "127.0.0.1:4301"), ("prefect", "localhost", "http://localhost:4302/api/health"),
    ("mlflow", "127.0.0.2", "http://127.0.0.2:5101/health"), ("mlflow", "::1", "http://[::1]:5101/health"),
    ("prefect", "::1", "http://[::1]:4302/api/health"),
    ("api", "192.168.0.7", "https://192.168.0.7:8101/readyz"), ("api", "0.0.0.0", "https://127.0.0.1:8101/readyz"),
])
def test_a_part_is_asked_where_the_settings_have_it_listen(
    host: Host, tmp_path: Path, part: str, listens: str, asked: str
) -> None:
    assert PROBES[part](settings(tmp_path, **{part: listens})) and host.asked == [asked]


def test_the_flows_are_at_work_while_they_hold_their_lock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, command = Settings.load(tmp_path, {}), ["health", "flows", "--home", str(tmp_path)]
    with held(ours.flows_lock):
        assert main(command) == 0 and capsys.readouterr() == ("flows is at work\n", "")
        assert main([*command, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"part": "flows", "at_work": True}
    assert main(command) == 1
