from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.bus.configuration import BusFiles
from services.bus.server import prepare, start
from services.contracts.signing import new_seed_file
from services.coordinator.nats_transport import NatsTransport

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
def bus(tmp_path: Path, free_port: int) -> Iterator[Bus]:
    files = BusFiles(tmp_path / "nats")
    seeds = {site: tmp_path / site / "site.nk" for site in SITES}
    keys = {site: new_seed_file(path) for site, path in seeds.items()}
    prepare(files, host="127.0.0.1", port=free_port, host_names=["127.0.0.1"], site_keys=keys)
    running = Bus(files, free_port, seeds, keys, start(files, host="127.0.0.1", port=free_port))
    yield running
    running.kill()


@pytest.fixture
def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
