"""The agent as a process behind a firewall that lets nothing out but an HTTP proxy: real server, WebSocket over TLS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from services.bus import server
from services.bus.certificates import ensure_certificates
from services.bus.configuration import BusFiles, TlsFiles
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import encode, unpack
from services.contracts.wire.messages import SiteUpdate, Task
from services.coordinator.asking.nats_transport import NatsTransport
from services.site_agent.settings import SettingsError, SiteSettings
from services.site_agent.setup.site_setup import SiteSetup, create_site
from tests.ledgers import verified
from tests.nats_server import start
from tests.ports import free_port
from tests.services.site_agent.proxy import HOST, WORD, Proxy
from tests.services.site_agent.reverse_proxy import ReverseProxy
from tests.waiting import wait_until


@dataclass
class Plant:
    """A server with both ports, and a founded site that knows the WebSocket's alone."""

    files: BusFiles
    address: str
    settings: Path
    key: str
    agents: list[subprocess.Popen[str]] = field(default_factory=list)

    def write(self, old: str, new: str) -> None:
        text = self.settings.read_text()
        assert old in text
        self.settings.write_text(text.replace(old, new, 1))

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "services.site_agent", "run", "--config", str(self.settings)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.agents.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment))
        return self.agents[-1]

    def wait_for(self, text: str) -> None:
        log = self.settings.with_name("site.log")
        wait_until(lambda: log.exists() and text in log.read_text(), f"word {text!r} in the site's log")


@pytest.fixture
def plant(
    tmp_path: Path, asset_type_file: Path, make_table: Any, write_csv: Callable[..., Path]
) -> Iterator[Plant]:
    port, websocket_port, files = free_port(), free_port(), BusFiles(tmp_path / "bus")
    server.prepare(
        files, host=HOST, port=port, host_names=[HOST], site_keys={}, websocket_port=websocket_port
    )
    address, folder = f"wss://{HOST}:{websocket_port}", tmp_path / "plant-1"
    key = create_site(SiteSetup(
        site_id="plant-1", folder=folder, asset_type=asset_type_file, data=write_csv(make_table(60)),
        servers=(address,), authority=files.authority,
    ))
    server.update_users(files, {"plant-1": key})
    running = start(files, host=HOST, port=port)
    made = Plant(files, f"tls://{HOST}:{port}", folder / "site.toml", key)
    yield made
    everybody: list[subprocess.Popen[Any]] = [*made.agents, running]
    for process in everybody:
        if process.returncode is None:
            process.kill()
            process.communicate()


def join(asset_type: AssetType, number: int) -> bytes:
    return encode(Task(
        kind="join", site_id="plant-1", run_id="c" * 32, round=number, method="level-bundle", asset_type="pump",
        contract=asset_type.fingerprint, spec=TrainingSpec(), reveal="sums",
    ))


async def ask(plant: Plant, asset_type: AssetType, *numbers: int) -> list[bytes]:
    transport = NatsTransport((plant.address,), plant.files.coordinator_seed, plant.files.authority)
    await transport.connect()
    try:
        said = [(await transport.ask({"plant-1": join(asset_type, each)}, 60))["plant-1"] for each in numbers]
    finally:
        await transport.close()
    assert all(each.failure == "" for each in said)
    return [each.frame or b"" for each in said]


async def test_a_question_is_answered_through_a_proxy_that_sees_nothing(
    plant: Plant, proxy: Proxy, asset_type: AssetType, tmp_path: Path
) -> None:
    (plant.settings.parent / "proxy.auth").write_text(WORD + "\n")
    plant.write("servers = ", f'proxy = "{proxy.url}"\nproxy_auth = "proxy.auth"\nservers = ')
    agent = plant.start()
    plant.wait_for("connected as a site")
    (first,) = await ask(plant, asset_type, 1)
    assert isinstance(unpack(first).message(), SiteUpdate) and unpack(first).is_signed_by(plant.key)
    proxy.cut()
    plant.wait_for("connected again")
    (second,) = await ask(plant, asset_type, 2)
    assert unpack(second).is_signed_by(plant.key)
    agent.send_signal(signal.SIGTERM)
    _, said = agent.communicate()
    assert agent.returncode == 0 and "Traceback" not in said and "Unclosed" not in said, said
    assert len(verified(plant.settings.with_name("ledger.jsonl"))) == 4
    target = SiteSettings.from_toml(plant.settings).servers[0].removeprefix("wss://")
    assert len(proxy.asked) >= 2 and set(proxy.asked) == {target} and proxy.refused == 0
    assert proxy.seen and not any(word in proxy.seen for word in (b"PING", b"CONNECT", b"plant-1", first[:40]))


@contextmanager
def behind(plant: Plant, folder: Path, path: str = "", status: str = "") -> Iterator[ReverseProxy]:
    """A reverse proxy in front of the server, which the plant is told of, with the authority of its certificate."""
    own = TlsFiles(folder / "of-the-proxy")
    ensure_certificates(own, [HOST])
    address = SiteSettings.from_toml(plant.settings).servers[0]
    proxy = ReverseProxy(own, int(address.rpartition(":")[2]), status)
    plant.write(address, f"wss://{HOST}:{proxy.port}{path}")
    plant.write(str(plant.files.authority), str(own.authority))
    yield proxy
    proxy.close()


@pytest.mark.parametrize("path", ["", "/plants"])
async def test_a_question_is_answered_through_a_reverse_proxy_that_ends_tls(
    plant: Plant, asset_type: AssetType, tmp_path: Path, path: str
) -> None:
    """It sees what is said; the answer that comes out is signed by the plant."""
    with behind(plant, tmp_path, path) as proxy:
        plant.start()
        plant.wait_for("connected as a site")
        (frame,) = await ask(plant, asset_type, 1)
    assert isinstance(unpack(frame).message(), SiteUpdate) and unpack(frame).is_signed_by(plant.key)
    assert proxy.lines == [f"GET {path or '/'} HTTP/1.1"] and proxy.seen


@pytest.mark.parametrize("status", ["404 Not Found", "502 Bad Gateway", "200 OK"])
def test_what_a_reverse_proxy_answers_in_place_of_the_server_stands_in_the_log(
    plant: Plant, tmp_path: Path, status: str
) -> None:
    with behind(plant, tmp_path, status=status) as proxy:
        plant.start()
        plant.wait_for(f"(what answers there says HTTP {status[:3]}, and opens no WebSocket); trying until it is there")
        wait_until(lambda: len(proxy.lines) >= 3, "third try")
    assert plant.settings.with_name("site.log").read_text().count("no server at") == 1


def test_what_a_proxy_says_stands_in_the_log_once(plant: Plant, proxy: Proxy) -> None:
    plant.write("servers = ", f'proxy = "{proxy.url}"\nservers = ')
    plant.start()
    plant.wait_for("Proxy Authentication Required")
    wait_until(lambda: proxy.refused >= 3, "third try")
    text = plant.settings.with_name("site.log").read_text()
    assert text.count("no server at") == text.count("Proxy Authentication Required") == 1 and "connected" not in text


def test_a_server_with_another_certificate_is_told_nothing(plant: Plant, tmp_path: Path) -> None:
    other = TlsFiles(tmp_path / "other")
    ensure_certificates(other, [HOST])
    plant.write(str(plant.files.authority), str(other.authority))
    agent = plant.start()
    log = plant.settings.with_name("site.log")

    def ended_or_let_in() -> bool:
        return agent.poll() is not None or (log.exists() and "connected as" in log.read_text())

    wait_until(ended_or_let_in, "end of the agent")
    agent.kill()
    _, said = agent.communicate()
    assert agent.returncode == 1 and "certificate does not fit" in said, said
    assert "Traceback" not in said


@pytest.mark.parametrize(("old", "new", "expected"), [
    ("servers = ", 'proxy = "http://me:word@proxy:3128"\nservers = ', "proxy_auth"),
    ("servers = ", 'proxy = "socks5://proxy:1080"\nservers = ', "http://host:port"),
    ("servers = ", 'proxy_auth = "x"\nservers = ', "give proxy too"),
    ("wss://", "tls://", "must be wss"),
    ('servers = ["wss://', 'servers = ["tls://oem:4222", "wss://', "or none is"),
])
def test_settings_that_cannot_work_are_told(plant: Plant, old: str, new: str, expected: str) -> None:
    if old == "wss://":
        plant.write("servers = ", 'proxy = "http://proxy:3128"\nservers = ')
    plant.write(old, new)
    with pytest.raises(SettingsError, match=expected):
        SiteSettings.from_toml(plant.settings)
