from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.bus.configuration import BusFiles
from services.bus.server import prepare
from services.contracts.keys.signing import new_seed_file
from services.coordinator.asking.nats_transport import NatsTransport
from services.coordinator.beginning import joining
from services.coordinator.round_loop import run_parts
from tests.nats_server import start
from tests.ports import free_port
from tests.services.coordinator.fake_ports import FakePlant, FakeWorks
from tests.services.coordinator.patient_works import PatientWorks

SITES = ("plant-1", "plant-2")


@dataclass
class Bus:
    """A real NATS server with TLS and nkeys, which a test may kill and start again."""

    files: BusFiles
    port: int
    seeds: dict[str, Path]
    keys: dict[str, str]
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"tls://127.0.0.1:{self.port}"

    def transport(self) -> NatsTransport:
        return NatsTransport([self.address], self.files.coordinator_seed, self.files.authority)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        self.process = start(self.files, host="127.0.0.1", port=self.port)


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    files, port = BusFiles(tmp_path / "nats"), free_port()
    seeds = {site: tmp_path / site / "site.nk" for site in SITES}
    keys = {site: new_seed_file(path) for site, path in seeds.items()}
    prepare(files, host="127.0.0.1", port=port, host_names=["127.0.0.1"], site_keys=keys)
    running = Bus(files, port, seeds, keys, start(files, host="127.0.0.1", port=port))
    yield running
    running.kill()


@pytest.fixture
def works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorks:
    """Four honest plants and a coordinator without a server; a question is asked again at once."""
    for module in (run_parts, joining):
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    names = [f"plant-{number}" for number in range(1, 5)]
    return FakeWorks({name: FakePlant(name, tmp_path / name / "site.nk", k) for k, name in enumerate(names)})


@pytest.fixture
def patient(works: FakeWorks) -> PatientWorks:
    """The same on virtual time."""
    return PatientWorks(works.plants)
