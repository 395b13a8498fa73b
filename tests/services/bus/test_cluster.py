"""Three real NATS servers as one plant link: any of them may be lost."""

from __future__ import annotations

import asyncio
import gc
import re
import ssl
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import pytest
from cryptography.x509 import DNSName, SubjectAlternativeName, load_pem_x509_certificate
from nats.errors import Error as NatsError

from services.bus.cluster import Member, make_cluster
from services.bus.configuration import BusFiles
from services.bus.reload import running_pid
from services.bus.server import command, update_users
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.keys.signing import new_seed_file, public_key
from services.coordinator.asking.nats_transport import NatsTransport
from tests.ports import free_port
from tests.waiting import PATIENCE, wait_until

NAMES = ("nats-1", "nats-2", "nats-3")
SITES = ("plant-1", "plant-2", "plant-3")
# A client of nats-py that tries again lets go of the connection that a server refused, without closing it.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <StreamWriter:ResourceWarning")


@dataclass
class Link:
    """A running cluster and the seeds of its plants."""

    folder: Path
    files: dict[str, BusFiles]
    members: dict[str, Member]
    seeds: dict[str, Path]
    processes: dict[str, subprocess.Popen[bytes]]

    def address(self, name: str) -> str:
        return f"tls://127.0.0.1:{self.members[name].port}"

    def start(self, name: str) -> None:
        files = self.files[name]
        files.pid.unlink(missing_ok=True)
        with files.log.open("ab") as log:
            self.processes[name] = subprocess.Popen(command(files), cwd=files.folder, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()

    def routes(self, name: str) -> int:
        return self.files[name].log.read_text().count("Route connection created")

    async def plant(self, site: str, name: str, answer: bytes = b"", *, seed: Path | None = None) -> Any:
        """A plant's client, connected to one server first; the others are where it goes when that is lost."""
        addresses = [self.address(name), *(self.address(other) for other in NAMES if other != name)]

        async def on_task(message: Any) -> None:
            await message.respond(answer + message.data)

        async def ignore(_: Exception) -> None:
            """A lost server is what these tests are about."""

        client = await nats.connect(
            addresses, tls=ssl.create_default_context(cafile=str(self.folder / "ca.pem")),
            nkeys_seed=str(seed or self.seeds[site]), dont_randomize=True, max_reconnect_attempts=-1,
            reconnect_time_wait=0.1, error_cb=ignore,
        )
        await client.subscribe(f"site.{site}.task", cb=on_task)
        await client.flush()
        return client

    def transport(self, *names: str) -> NatsTransport:
        servers = [self.address(each) for each in names]
        return NatsTransport(servers, self.folder / "coordinator.nk", self.folder / "ca.pem")


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    members = {
        name: Member(name, ("127.0.0.1", name), host="127.0.0.1", port=free_port(), route_port=free_port())
        for name in NAMES
    }
    files = make_cluster(tmp_path / "bus", list(members.values()))
    seeds = {site: tmp_path / f"{site}.nk" for site in SITES}
    keys = {site: new_seed_file(seed) for site, seed in seeds.items()}
    for own in files.values():
        update_users(own, keys)
    running = Link(tmp_path / "bus", files, members, seeds, {})
    try:
        for name in NAMES:
            running.start(name)
        wait_until(lambda: all(running.routes(name) >= 2 for name in NAMES), "route between every two servers")
        wait_until(lambda: all(running_pid(own) for own in files.values()), "process id of every server")
        yield running
    finally:
        for process in running.processes.values():
            process.kill()
            process.wait()
        gc.collect()  # what the clients left open is told here, and not in some later test


async def all_heard(transport: NatsTransport, *sites: str) -> None:
    """Wait until the servers have told one another of the plants; the coordinator asks again as long, too."""
    deadline = time.monotonic() + PATIENCE
    while not all(await asyncio.gather(*(transport.is_heard(site) for site in sites))):
        assert time.monotonic() < deadline, "a plant is not heard"
        await asyncio.sleep(0.05)


async def test_plants_at_different_servers_answer_and_any_server_may_be_killed(link: Link) -> None:
    plants = [await link.plant(site, name, site.encode()) for site, name in zip(SITES, NAMES, strict=True)]
    transport = link.transport(*NAMES)
    await transport.connect()
    frames, wanted = {site: b" 1" for site in SITES}, {site: site.encode() + b" 1" for site in SITES}
    try:
        for killed in (None, "nats-1", "nats-2"):  # the coordinator is at one of the three, a plant at each
            if killed:
                link.kill(killed)
            await all_heard(transport, *SITES)
            answers = await transport.ask(frames, PATIENCE)
            assert {site: answer.frame for site, answer in answers.items()} == wanted
    finally:
        await transport.close()
        for plant in plants:
            await plant.close()


async def test_a_plant_whose_key_is_taken_away_is_cut_at_the_server_where_it_is(link: Link) -> None:
    plant = await link.plant("plant-1", "nats-2")
    left = {site: public_key(seed) for site, seed in link.seeds.items() if site != "plant-1"}
    for files in link.files.values():
        update_users(files, left)
    deadline = time.monotonic() + PATIENCE
    while plant.is_connected and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert not plant.is_connected
    await plant.close()


async def test_a_plant_hears_no_other_plants_tasks_across_servers(link: Link, tmp_path: Path) -> None:
    spy = await link.plant("plant-2", "nats-3")
    heard: list[bytes] = []

    async def note(message: Any) -> None:
        heard.append(message.data)

    await spy.subscribe("site.plant-1.task", cb=note)
    plant = await link.plant("plant-1", "nats-1", b"mine ")
    transport = link.transport("nats-2")
    await transport.connect()
    await all_heard(transport, "plant-1")
    answers = await transport.ask({"plant-1": b"x"}, PATIENCE)
    assert answers["plant-1"].frame == b"mine x"
    with suppress(NatsError):
        await spy.flush()
    assert heard == []
    for client in (spy, plant):
        await client.close()
    await transport.close()


def test_a_server_with_another_authority_is_told_nothing(link: Link, tmp_path: Path) -> None:
    """Who reaches the port between servers, and has no certificate of the authority, would else hear everything."""
    stranger = Member("nats-4", ("127.0.0.1",), host="127.0.0.1", port=free_port(), route_port=free_port())
    (files,) = make_cluster(tmp_path / "stranger", [stranger]).values()
    text = re.sub(r"  verify: \w+\n", "  insecure: true\n", files.configuration.read_text())  # it asks for no proof
    own, wanted = (f"nats://127.0.0.1:{member.route_port}" for member in (stranger, link.members["nats-1"]))
    files.configuration.write_text(text.replace(f'routes: ["{own}"]', f'routes: ["{wanted}"]'))
    with files.log.open("ab") as log:
        process = subprocess.Popen(command(files), cwd=files.folder, stdout=log, stderr=log)
    try:
        refused = "TLS route handshake error"
        wait_until(lambda: refused in link.files["nats-1"].log.read_text(), "refusal of the stranger's certificate")
    finally:
        process.kill()
        process.wait()


def test_servers_tell_one_another_a_name_that_their_certificate_bears(tmp_path: Path) -> None:
    """Else they tell the address that a connection came from, which the others try, and refuse, again and again."""
    files = make_cluster(tmp_path, [Member(name, (f"{name}.example", "plants.example")) for name in NAMES])
    for name, own in files.items():
        (advertised,) = re.findall(r'^advertise: "([^"]*)"$', own.configuration.read_text(), re.MULTILINE)
        assert advertised == f"{name}.example:6222"
        names = load_pem_x509_certificate(own.certificate.read_bytes()).extensions.get_extension_for_class(
            SubjectAlternativeName).value.get_values_for_type(DNSName)
        assert advertised.partition(":")[0] in names


def test_each_server_holds_its_own_key_and_never_the_coordinators(tmp_path: Path) -> None:
    files = make_cluster(tmp_path, [Member(name, (f"{name}.example",)) for name in NAMES])
    seed = (tmp_path / "coordinator.nk").read_text().strip()
    assert len({own.key.read_text() for own in files.values()}) == 3
    for own in files.values():
        texts = [path.read_text() for path in own.folder.iterdir()]
        assert not [text for text in texts if seed in text]
        assert public_key(tmp_path / "coordinator.nk") in own.users.read_text()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_file()}
    assert modes == {0o600}


def test_a_cluster_is_made_once_and_its_servers_have_names_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="different names"):
        make_cluster(tmp_path, [Member("a", ("x",)), Member("a", ("y",))])
    with pytest.raises(InvalidInputError, match="host name"):
        make_cluster(tmp_path, [Member("a", ("0.0.0.0",))])
    make_cluster(tmp_path, [Member("a", ("x",))])
    with pytest.raises(ConflictError, match="already"):
        make_cluster(tmp_path, [Member("b", ("y",))])
    for gone in ("coordinator.nk", "ca.pem"):
        (tmp_path / gone).rename(tmp_path / "aside")
        with pytest.raises(ConflictError, match="already"):
            make_cluster(tmp_path, [Member("b", ("y",))])
        (tmp_path / "aside").rename(tmp_path / gone)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Member("a", ("x",), port=0), "from 1 to 65535, got 0"),
        (Member("a", ("x",), route_port=65536), "from 1 to 65535, got 65536"),
        (Member("a", ("x",), websocket_port=-1), "from 1 to 65535, got -1"),
        (Member("a", ("x",), port=6222), "a port of their own, got 6222, 6222"),
        (Member("a", ("x",), websocket_port=4222), "a port of their own, got 4222, 6222, 4222"),
        (Member("a", ("x:5",)), "'x:5' is no name of a host: give a name such as nats-1.example.com or an IP address"),
        (Member("a", ("x", "https://y")), "'https://y' is no name of a host"),
        (Member("a", ('x"',)), "is no name of a host"),
        (Member("a", ("x y",)), "'x y' is no name of a host"),
        (Member("a", ("x-",)), "'x-' is no name of a host"),
        (Member("a", ("*.example",)), r"'\*.example' is no name of a host"),
    ],
)
def test_a_port_or_a_name_that_none_can_have_is_refused_before_anything_is_written(
    tmp_path: Path, wrong: Member, said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        make_cluster(tmp_path / "bus", [Member("b", ("z",)), wrong])
    assert not (tmp_path / "bus").exists()


def test_two_servers_at_one_place_are_refused_and_an_address_of_version_6_is_written_in_brackets(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidInputError, match="different hosts or ports, got x:6222, x:6222"):
        make_cluster(tmp_path / "bus", [Member("a", ("x",)), Member("b", ("x",))])
    assert not (tmp_path / "bus").exists()
    files = make_cluster(tmp_path / "bus", [Member("a", ("::1", "*.example"))])
    assert 'advertise: "[::1]:6222"' in files["a"].configuration.read_text(encoding="ascii")
