"""A training over a cluster of three NATS servers goes on when one of them is killed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.bus.cluster import Member, make_cluster
from services.bus.configuration import BusFiles
from services.bus.server import command, update_users
from tests.journeys.works import ProcessWorks, open_process_works, rows_of
from tests.ports import free_port
from tests.waiting import wait_until

NAMES = ("nats-1", "nats-2", "nats-3")
PLANTS = ("plant-1", "plant-2", "plant-3")


class Cluster:
    """The servers of the plant link, as processes that can be killed."""

    def __init__(self, folder: Path) -> None:
        self.members = {
            name: Member(name, ("127.0.0.1",), host="127.0.0.1", port=free_port(), route_port=free_port())
            for name in NAMES
        }
        self.files: dict[str, BusFiles] = make_cluster(folder, list(self.members.values()))
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def addresses(self) -> list[str]:
        return [f"tls://127.0.0.1:{member.port}" for member in self.members.values()]

    def start(self, keys: dict[str, str]) -> None:
        for name, files in self.files.items():
            update_users(files, keys)
            with files.log.open("ab") as log:
                process = subprocess.Popen(command(files), cwd=files.folder, stdout=log, stderr=log)
            self.processes[self.members[name].port] = process

    def kill(self, port: int) -> None:
        self.processes[port].kill()
        self.processes[port].wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "cluster")
    yield made
    for process in made.processes.values():
        process.kill()
        process.wait()


@pytest.fixture
def works(
    tmp_path: Path, cluster: Cluster, prefect_url: str, new_mlflow: Callable[[Path], str]
) -> Iterator[ProcessWorks]:
    folder = tmp_path / "cluster"
    seed, ca = folder / "coordinator.nk", folder / "ca.pem"
    link = f"servers = {cluster.addresses}\nseed_file = '{seed}'\nca_file = '{ca}'\n"
    with open_process_works(tmp_path, prefect_url, sites=0, link=link) as running:
        assert new_mlflow(running.home) == running.settings.tracking_uri
        for number, site in enumerate(PLANTS):
            header = ["flow", "pressure", "speed", "label"]
            running.create_site(site, rows_of(number, 60, seed=7), header, cluster.addresses, ca)
        cluster.start({each.site_id: each.public_key for each in running.store.sites.list_sites("active")})
        for site in PLANTS:
            running.start_agent(site)
        running.wait_for_agents()
        yield running


def console(works: ProcessWorks, site: str) -> str:
    return (works.plants / site / "console.log").read_text()


def test_a_training_goes_on_when_a_server_of_the_cluster_is_killed(works: ProcessWorks, cluster: Cluster) -> None:
    works.plan("over-three", max_rounds=60, round_deadline_seconds=5)
    flow = works.start_flow("over-three")
    works.wait_for_round("over-three", 3)
    connected = re.search(r"connected as a site to \S*:(\d+)", console(works, "plant-1"))
    assert connected is not None
    cluster.kill(int(connected[1]))
    at = works.newest_run("over-three")
    assert at is not None and at.status == "running"
    run = works.wait_for_end("over-three", flow)
    assert (run.status, run.rounds) == ("completed", 60), run.reason
    assert {site.site_id for site in run.sites} == set(PLANTS) and not run.excluded
    wait_until(lambda: "connected again" in console(works, "plant-1"), "plant at another server")
