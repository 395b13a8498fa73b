"""Two API processes with a home folder each, as on two machines, on one PostgreSQL and one registry."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.backend.wiring import Backend, open_backend
from api.cli.processes import child_environment, stack
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from services.contracts.access.identity import Role
from services.contracts.keys.signing import new_seed_file
from services.identity.service_keys import MEANINGS
from services.plant_simulator.assets import builtin_asset_type
from services.process.settings import Settings
from tests.api.conftest import FOUNDER, MODEL, RUN_ID, SITES, a_plan, public_key, put_run
from tests.api.pair.balancer import round_robin
from tests.ports import free_port
from tests.waiting import PATIENCE, wait_until


@dataclass
class Pair:
    """Two API processes, and a balancer in front of them."""

    backend: Backend
    homes: list[Settings]
    tokens: dict[Role, str]
    folder: Path
    balancer: str = ""
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, number: int) -> subprocess.Popen[bytes]:
        """Start one of the processes; its output is kept."""
        settings = self.homes[number]
        told = child_environment.environment(settings)
        with (self.folder / f"api-{number}.log").open("ab") as log:
            self.running[number] = subprocess.Popen(
                stack.api_command(settings), env={**os.environ, **told}, stdout=log, stderr=subprocess.STDOUT
            )
        return self.running[number]

    def log(self, number: int) -> str:
        return (self.folder / f"api-{number}.log").read_text()

    def is_ready(self, number: int) -> bool:
        assert self.running[number].poll() is None, self.log(number)
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.homes[number].api.url}/readyz", timeout=PATIENCE).status_code == 200
        return False

    def url(self, at: int | None) -> str:
        """Address of one of the two; None: of the balancer, which sends every connection to the other one."""
        return self.balancer if at is None else self.homes[at].api.url

    def ask(self, at: int | None, role: Role | None, method: str, path: str, json: Any = None, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[role]}"} if role else {}
        return httpx.request(
            method, self.url(at) + path, headers=headers | more.pop("headers", {}), json=json, timeout=PATIENCE, **more
        )

    def stop(self) -> None:
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            process.wait(PATIENCE)


def home_of(folder: Path, database: str, mlflow: dict[str, str]) -> Settings:
    """A home folder with settings of its own."""
    folder.mkdir(mode=0o700)
    new_seed_file(folder / "coordinator.nk")
    (folder / "ballast.toml").write_text(
        f'database_url = "{database}"\n[api]\nport = {free_port()}\n'
        f'[mlflow]\ntracking_uri = "{mlflow["tracking_uri"]}"\nartifact_root = "{mlflow["artifact_root"]}"\n'
        f'[nats]\nservers = ["tls://nats.example.com:4222"]\nseed_file = "{folder / "coordinator.nk"}"\n'
    )
    return Settings.load(folder, {})


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, new_postgresql: Callable[[], str], mlflow_settings: dict[str, str]
) -> Iterator[Pair]:
    folder, database = tmp_path_factory.mktemp("pair"), new_postgresql()
    homes = [home_of(folder / name, database, mlflow_settings) for name in ("first", "second")]
    shutil.copy(homes[0].home / "coordinator.nk", homes[1].home / "coordinator.nk")
    with ExitStack() as ended:
        backend = ended.enter_context(open_backend(homes[0]))
        backend.store.asset_types.add(builtin_asset_type("triplex-pump"))
        for site in SITES:
            backend.store.sites.enrol(site, public_key(), ["triplex-pump"])
        backend.store.plans.create(a_plan(MODEL, sites=SITES))
        put_run(backend.store, MODEL, RUN_ID, "1")
        made = {role: tokens.create(backend, FOUNDER, TokenRequest(name=role.value, role=role)).token for role in Role}
        pair = Pair(backend, homes, made, folder)
        ended.callback(pair.stop)
        pair.start(0)
        wait_until(lambda: pair.is_ready(0), "first API process")
        for name in MEANINGS:
            shutil.copy(homes[0].home / name, homes[1].home / name)
        pair.start(1)
        wait_until(lambda: pair.is_ready(1), "second API process")
        pair.balancer = f"http://127.0.0.1:{ended.enter_context(round_robin([each.api.port for each in homes]))}"
        yield pair
