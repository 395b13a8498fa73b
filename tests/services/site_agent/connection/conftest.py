"""A real NATS server, a plant's agent as a process, and the OEM who asks it."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import pytest

from services.bus import server
from services.bus.configuration import COORDINATOR_INBOX, BusFiles
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import encode
from services.contracts.wire.messages import Task
from services.site_agent.setup.site_setup import SiteSetup, create_site
from tests.nats_server import start
from tests.ports import free_port
from tests.waiting import PATIENCE, wait_until

HOST = "127.0.0.1"


@dataclass
class Bus:
    """An embedded server that can be killed and started again on the same port."""

    files: BusFiles
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = start(self.files, host=HOST, port=self.port)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    @property
    def url(self) -> str:
        return f"tls://{HOST}:{self.port}"


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    port = free_port()
    bus = Bus(BusFiles(tmp_path / "bus"), port)
    server.prepare(bus.files, host=HOST, port=port, host_names=[HOST, "localhost"], site_keys={})
    yield bus
    bus.kill()


@dataclass
class Plant:
    """A founded site and its agent process."""

    folder: Path
    key: str
    process: subprocess.Popen[str] | None = None

    def start(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "services.site_agent", "run", "--config", str(self.folder / "site.toml")]
        self.process = subprocess.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    def ended(self) -> tuple[int, str]:
        """Exit code and what was said on stderr, of a process that ends by itself."""
        assert self.process is not None
        out, said = self.process.communicate(timeout=PATIENCE)
        assert out == ""
        return self.process.returncode, said

    def stop(self) -> tuple[int, str]:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def wait_for(self, text: str, times: int = 1) -> None:
        log = self.folder / "site.log"
        wait_until(lambda: log.exists() and log.read_text().count(text) >= times, f"word {text!r} in the site's log")


@pytest.fixture
def plant(
    tmp_path: Path, bus: Bus, asset_type_file: Path, make_table: Any, write_csv: Callable[..., Path]
) -> Iterator[Plant]:
    folder = tmp_path / "plant-1"
    key = create_site(
        SiteSetup(
            site_id="plant-1", folder=folder, asset_type=asset_type_file, data=write_csv(make_table(60)),
            servers=(bus.url,), authority=bus.files.authority,
        )
    )
    plant = Plant(folder, key)
    yield plant
    if plant.process is not None:
        plant.process.kill()
        plant.process.communicate()


class Oem:
    """The coordinator's side of the link, with its own key and permissions."""

    def __init__(self, bus: Bus, asset_type: AssetType) -> None:
        self.bus = bus
        self.asset_type = asset_type

    def ask(self, *tasks: bytes, hellos: int = 0) -> tuple[list[bytes], list[bytes]]:
        return asyncio.run(self._ask(tasks, hellos))

    async def _ask(self, tasks: tuple[bytes, ...], hellos: int) -> tuple[list[bytes], list[bytes]]:
        context = ssl.create_default_context(cafile=str(self.bus.files.authority))
        client = await nats.connect(
            self.bus.url, tls=context, nkeys_seed=str(self.bus.files.coordinator_seed),
            inbox_prefix=COORDINATOR_INBOX.encode(),
        )
        heard: list[bytes] = []
        if hellos:
            subscription = await client.subscribe("hello.*")
            for _ in range(hellos):
                heard.append((await subscription.next_msg(timeout=PATIENCE)).data)
        answers = [(await client.request("site.plant-1.task", task, timeout=PATIENCE)).data for task in tasks]
        await client.close()
        return answers, heard

    def join(self, number: int = 0) -> bytes:
        return encode(
            Task(
                kind="join", site_id="plant-1", run_id="c" * 32, round=number, method="level-bundle",
                asset_type="pump", contract=self.asset_type.fingerprint, spec=TrainingSpec(),
                reveal="sums",
            )
        )


@pytest.fixture
def oem(bus: Bus, asset_type: AssetType) -> Oem:
    return Oem(bus, asset_type)
