"""The agent as a process against a real NATS server with TLS, nkeys and the permissions of production."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import pytest

from services.bus import server
from services.bus.configuration import COORDINATOR_INBOX, BusFiles
from services.contracts.asset_type import AssetType
from services.contracts.codec import decode, digest, encode
from services.contracts.messages import Hello, SiteRefusal, SiteUpdate, Task, TrainingSpec
from services.contracts.signing import new_seed_file, public_key
from services.site_agent import ledger_check
from services.site_agent.site_setup import SiteSetup, create_site
from tests.nats_server import start
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
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
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


def test_answers_tasks_survives_the_servers_death_and_stops_cleanly(bus: Bus, plant: Plant, oem: Oem) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    plant.start()
    plant.wait_for("no server at")
    bus.start()
    plant.wait_for("connected as a site")
    (first,), _ = oem.ask(oem.join(1))
    assert isinstance(decode(first, 1 << 20), SiteUpdate)

    bus.kill()
    plant.wait_for("connection lost")
    bus.start()
    plant.wait_for("connected again")
    (second,), _ = oem.ask(oem.join(2))
    assert isinstance(decode(second, 1 << 20), SiteUpdate)

    code, said = plant.stop()
    assert code == 0, said
    assert "Traceback" not in said
    entries = ledger_check.verify(plant.folder / "ledger.jsonl")
    assert [entry["message"] for entry in entries] == ["hello", "update", "hello", "update"]
    assert [entry["sha256"] for entry in entries if entry["message"] == "update"] == [digest(first), digest(second)]
    assert said.count("no server at") == 1, "an absent server is said once, not at every try"


def test_says_hello_when_it_connects(bus: Bus, plant: Plant, oem: Oem) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()

    async def listen() -> bytes:
        listening = asyncio.create_task(oem._ask((), 1))
        await asyncio.sleep(0.5)
        plant.start()
        _, (hello,) = await listening
        return hello

    message = decode(asyncio.run(listen()), 1 << 16)
    assert isinstance(message, Hello) and message.site_id == "plant-1"


def test_killed_and_started_again_it_answers_the_next_task(bus: Bus, plant: Plant, oem: Oem) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    plant.wait_for("connected")
    (first,), _ = oem.ask(oem.join(1))
    assert plant.process is not None
    plant.process.kill()
    plant.process.communicate()
    plant.start()
    plant.wait_for("connected", times=2)
    (again,), _ = oem.ask(oem.join(1))
    assert again == first, "a restarted agent must give the same answer"
    ledger_check.verify(plant.folder / "ledger.jsonl")


def one_line(said: str) -> str:
    """The last line that the agent said, which is the reason of its end."""
    assert "Traceback" not in said
    last = said.strip().splitlines()[-1]
    assert last.startswith("ballast-site: ")
    return last


def test_a_key_that_is_not_enrolled_is_a_clear_failure(bus: Bus, plant: Plant) -> None:
    bus.start()
    plant.start()
    code, said = plant.ended()
    assert code == 1
    assert f"does not accept this site's key {plant.key}" in one_line(said)


def test_a_key_that_is_enrolled_a_moment_late_is_accepted(bus: Bus, plant: Plant, oem: Oem) -> None:
    bus.start()
    plant.start()
    plant.wait_for("data opened")
    time.sleep(0.7)
    server.update_users(bus.files, {"plant-1": plant.key})
    plant.wait_for("connected")
    (answer,), _ = oem.ask(oem.join())
    assert isinstance(decode(answer, 1 << 20), SiteUpdate)


def test_a_key_that_is_enrolled_for_another_site_is_a_clear_failure(bus: Bus, plant: Plant) -> None:
    server.update_users(bus.files, {"plant-2": plant.key})
    bus.start()
    plant.start()
    code, said = plant.ended()
    assert code == 1
    assert "not as site plant-1" in one_line(said)


def test_a_site_that_is_suspended_while_it_runs_ends_with_the_reason(bus: Bus, plant: Plant) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    plant.wait_for("connected")
    server.update_users(bus.files, {})
    code, said = plant.ended()
    assert code == 1
    assert "does not accept this site's key" in one_line(said)


def test_a_server_with_another_certificate_is_a_clear_failure(bus: Bus, plant: Plant, tmp_path: Path) -> None:
    other = BusFiles(tmp_path / "other")
    server.prepare(other, host=HOST, port=bus.port, host_names=[HOST], site_keys={"plant-1": plant.key})
    process = start(other, host=HOST, port=bus.port)
    try:
        plant.start()
        code, said = plant.ended()
    finally:
        process.kill()
        process.wait()
    assert code == 1
    assert "the server's certificate does not fit" in one_line(said)


def test_a_server_without_tls_gets_nothing(bus: Bus, plant: Plant) -> None:
    text = bus.files.configuration.read_text()
    head, _, rest = text.partition("tls {")
    bus.files.configuration.write_text(head + rest.partition("}")[2])
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    code, said = plant.ended()
    assert code == 1
    assert "the server does not speak TLS" in one_line(said)
    assert not ledger_check.verify(plant.folder / "ledger.jsonl"), "something left over an open connection"


def test_with_a_timeout_an_absent_server_ends_the_agent(plant: Plant) -> None:
    plant.start("--timeout", "1")
    code, said = plant.ended()
    assert code == 1
    assert "no NATS server answered" in one_line(said)


def test_told_to_stop_while_the_server_is_absent_it_stops(plant: Plant) -> None:
    plant.start()
    plant.wait_for("no server at")
    code, said = plant.stop()
    assert code == 0, said


def test_the_console_and_the_wire_name_nothing_of_data_that_do_not_fit(
    bus: Bus, plant: Plant, oem: Oem, make_table: Any, write_csv: Callable[..., Path]
) -> None:
    """The agent's console may be collected by others; where and what is wrong stands in the site's own log alone."""
    rows = make_table(60)
    rows[7][3] = "CANARY-739158264013"
    write_csv(rows)
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    plant.wait_for("connected")
    (answer,), _ = oem.ask(oem.join())
    refusal = decode(answer, 1 << 20)
    assert isinstance(refusal, SiteRefusal) and refusal.code == "bad_data"
    plant.wait_for("line 8: label 'CANARY-739158264013' is not a class of pump")
    code, said = plant.stop()
    assert code == 0
    assert "refused join" in said
    assert "CANARY" not in said and b"CANARY" not in answer
    assert "CANARY" not in (plant.folder / "ledger.jsonl").read_text()


def test_a_ledger_that_was_tampered_with_stops_the_agent(bus: Bus, plant: Plant) -> None:
    (plant.folder / "ledger.jsonl").write_text("{}\n")
    plant.start()
    code, said = plant.ended()
    assert code == 1
    assert "is not what was written" in one_line(said)


def test_two_agents_of_one_site_cannot_run_at_once(plant: Plant) -> None:
    plant.start()
    plant.wait_for("no server at")
    second = Plant(plant.folder, plant.key)
    second.start()
    code, said = second.ended()
    assert code == 1
    assert "another agent of this site is running" in one_line(said)


def test_the_seed_file_names_the_key_that_was_given_out(plant: Plant, tmp_path: Path) -> None:
    assert public_key(plant.folder / "site.nk") == plant.key
    assert (plant.folder / "site.nk").stat().st_mode & 0o077 == 0
    assert new_seed_file(tmp_path / "other.nk") != plant.key


def test_a_second_signal_ends_an_agent_that_is_still_at_work(plant: Plant) -> None:
    """Told to stop, it waits for its work; told again, it does not."""
    program = (
        "import asyncio, sys, threading, time\n"
        "from services.site_agent import agent\n"
        "async def at_work():\n"
        "    stop = asyncio.Event()\n"
        "    loop = asyncio.get_running_loop()\n"
        "    for number in (agent.signal.SIGINT, agent.signal.SIGTERM):\n"
        "        loop.add_signal_handler(number, agent._on_signal, loop, stop)\n"
        "    asyncio.create_task(asyncio.to_thread(time.sleep, 600))\n"
        "    print('at work', flush=True)\n"
        "    await stop.wait()\n"
        "    print('stopped', flush=True)\n"
        "agent.STOP_SECONDS = float(sys.argv[1])\n"
        "asyncio.run(at_work())\n"
    )
    for seconds, more, code in (("600", True, -signal.SIGTERM), ("0.5", False, 0)):
        process = subprocess.Popen([sys.executable, "-c", program, seconds], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        process.terminate()
        assert process.stdout.readline() == "stopped\n"
        if more:
            process.terminate()
        assert process.wait(timeout=PATIENCE) == code
        process.stdout.close()
