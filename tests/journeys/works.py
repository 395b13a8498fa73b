"""A small works on one machine: real NATS, MLflow and database; plants whose agents are separate processes."""

from __future__ import annotations

import csv
import io
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from api.cli.processes.child_environment import PREFECT_GUARDS
from migrations.run import upgrade
from models.methods.catalogue import METHODS
from services.bus.configuration import BusFiles
from services.bus.server import prepare, update_users
from services.contracts.history.run import Run
from services.contracts.keys.signing import public_key
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.process.settings import Settings
from services.registry.mlflow_environment import QUIET
from services.registry.mlflow_registry import ModelRegistry
from services.round_store.runs.run_rows import FINAL
from services.round_store.store import RoundStore
from services.site_agent.cli import main as ballast_site
from services.site_agent.vault.records.exposure_record import ExposureRecord
from tests.nats_server import start
from tests.ports import free_port
from tests.waiting import PATIENCE, wait_until

BIN = Path(sys.executable).parent
PREFECT_SECRET = "ballast:of-the-journeys"
ASSET = """
name = "rig"
[[features]]
name = "flow"
unit = "L/min"
low = -5.0
high = 5.0
[[features]]
name = "pressure"
unit = "bar"
low = -5.0
high = 5.0
[[features]]
name = "speed"
unit = "rpm"
low = -5.0
high = 5.0
[[fault_classes]]
name = "healthy"
severity = 0
[[fault_classes]]
name = "leak"
severity = 3
"""

AS_ASKED = """
import sys, traceback
from flows.retrain import retrain_here
for plan in sys.stdin:
    try:
        retrain_here(plan.strip())
    except Exception:
        traceback.print_exc()
"""
"""A process that trains one plan after another, as they are named to it, and outlives a run that fails.

Prefect and MLflow take longer to import than a short run takes.
"""


@dataclass
class ProcessWorks:
    """The OEM's side in ``home`` and the plants beside it, every one of them a process that can be killed."""

    home: Path
    plants: Path
    settings: Settings
    store: RoundStore
    environment: dict[str, str]
    agents: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    server: subprocess.Popen[bytes] | None = None
    flows: list[subprocess.Popen[bytes]] = field(default_factory=list)
    lasting: subprocess.Popen[bytes] | None = None
    secret: bytes | None = None

    @property
    def files(self) -> BusFiles:
        return BusFiles(self.settings.bus_folder)

    def start_server(self) -> None:
        self.server = start(self.files, host="127.0.0.1", port=self.settings.nats.port)

    def kill_server(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.wait()

    def create_site(
        self, site: str, rows: list[list[str]], header: list[str], servers: Sequence[str] = (), ca: Path | None = None
    ) -> None:
        folder = self.plants / site
        folder.mkdir(parents=True)
        with (folder / "data.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        with redirect_stdout(io.StringIO()) as said:
            code = ballast_site([
                "init", "--site-id", site, "--dir", str(folder), "--asset-type", str(self.plants / "rig.toml"),
                "--data", str(folder / "data.csv"), "--ca", str(ca or self.files.authority),
                "--oem-key", public_key(self.settings.nats_seed),
                *(word for each in servers or self.settings.nats_servers for word in ("--server", each)),
                *(word for method in METHODS for word in ("--allow-method", method)),
            ])
        assert code == 0, said.getvalue()
        # Dozens of runs on the same few rows: more than a plant's policy allows at the start.
        policy = folder / "policy.toml"
        text = policy.read_text()
        for allowed in ("exposure_limit = 0.0", "max_answers_per_run = 1000", "max_runs_per_day = 50"):
            assert text.count(f"\n{allowed}\n") == 1
            name = allowed.split(" = ")[0]
            text = text.replace(allowed, f"{name} = 1.0" if name == "exposure_limit" else f"{name} = 100000")
        assert text.count('\nreveal = ["sums"]\n') == 1
        text = text.replace('reveal = ["sums"]', 'reveal = ["sums", "each site"]')
        policy.write_text(text)
        if self.secret is not None:
            draw_by(folder / "exposure.sqlite", self.secret)
        self.store.sites.enrol(site, said.getvalue().split()[-1], ["rig"])
        update_users(self.files, {each.site_id: each.public_key for each in self.store.sites.list_sites("active")})

    def start_agent(self, site: str, program: str = "") -> None:
        """Start a plant's agent, or a program of the tests that stands in for it."""
        command = [sys.executable, program] if program else [str(BIN / "ballast-site")]
        with (self.plants / site / "console.log").open("ab") as log:
            self.agents[site] = subprocess.Popen(
                [*command, "run", "--config", str(self.plants / site / "site.toml")],
                stdout=log, stderr=log, env={**self.environment, "OPENBLAS_NUM_THREADS": "1"},
            )

    def kill_agent(self, site: str) -> None:
        self.agents[site].kill()
        self.agents[site].wait()

    def wait_for_agents(self) -> None:
        def all_said_hello() -> bool:
            return all("connected" in (self.plants / site / "console.log").read_text() for site in self.agents)

        wait_until(all_said_hello, "connection of every agent")

    def plan(self, name: str, **changes: object) -> Plan:
        values: dict[str, object] = {
            "name": name, "asset_type": "rig", "method": "fdr-sm", "max_rounds": 400, "gap": 1e-9, "min_sites": 3,
            "reveal": "each site",
            "gates": {"max_gap": None}, "round_deadline_seconds": 20, "absence_patience_seconds": 30,
        }
        plan = Plan.model_validate(values | changes)
        self.store.plans.create(plan)
        return plan

    def start_flow(self, plan: str) -> subprocess.Popen[bytes]:
        """Start the flow of a plan in a process of its own."""
        command = [sys.executable, "-m", "flows.retrain", plan]
        with (self.home / "flow.log").open("ab") as log:
            process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        self.flows.append(process)
        return process

    def train(self, plan: str) -> None:
        """Train a plan in a process that all share, until one kills it; :meth:`wait_for_run` waits for its end."""
        if self.lasting is None:
            with (self.home / "flow.log").open("ab") as log:
                self.lasting = subprocess.Popen(
                    [sys.executable, "-c", AS_ASKED], env=self.environment, stdin=subprocess.PIPE, stdout=log,
                    stderr=log,
                )
            self.flows.append(self.lasting)
        assert self.lasting.poll() is None and self.lasting.stdin is not None
        self.lasting.stdin.write(f"{plan}\n".encode())
        self.lasting.stdin.flush()

    def kill_training(self) -> None:
        """Kill the process of :meth:`train`; what is trained next has another one."""
        assert self.lasting is not None
        with self.lasting as process:
            process.kill()
        self.lasting = None

    def newest_run(self, plan: str) -> Run | None:
        runs = self.store.runs.list_runs(plan=plan, limit=1)
        return runs[0] if runs else None

    def wait_for_round(self, plan: str, number: int) -> None:
        def reached() -> bool:
            run = self.newest_run(plan)
            assert run is None or run.status in ("pending", "running"), f"{run} ended early"
            return run is not None and run.rounds >= number

        wait_until(reached, f"round {number} of {plan}")

    def wait_for_end(self, plan: str, process: subprocess.Popen[bytes]) -> Run:
        process.wait(timeout=PATIENCE)
        run = self.newest_run(plan)
        assert run is not None
        return run

    def wait_for_run(self, plan: str) -> Run:
        """The run of a plan at its end, whichever process drives it."""
        def ended() -> bool:
            run = self.newest_run(plan)
            return run is not None and run.status in FINAL

        wait_until(ended, f"end of the run of {plan}", every=0.25)
        run = self.newest_run(plan)
        assert run is not None
        return run

    def weights(self, plan: str) -> np.ndarray:
        return ModelRegistry(self.settings.tracking_uri, self.settings.artifact_root).get(plan, "challenger").weights

    def close(self) -> None:
        if self.lasting is not None and self.lasting.stdin is not None:
            self.lasting.stdin.close()
        for process in [*self.flows, *self.agents.values(), *([self.server] if self.server else [])]:
            process.kill()
            process.wait()
        self.store.close()


def draw_by(record: Path, secret: bytes) -> None:
    """Begin a plant's record of what was answered, with a secret of ours for its guard to draw by."""
    ExposureRecord(record).close()
    with closing(sqlite3.connect(record)) as base, base:
        base.execute("UPDATE secret SET bytes = ?", (secret,))


def rows_of(site: int, count: int, seed: int) -> list[list[str]]:
    draw = np.random.default_rng([seed, site])
    labels = np.arange(count) % 2
    centres = np.where(labels[:, None] == 1, 0.8, -0.8) * np.array([1.0, 0.5, 0.0]) + 0.2 * site
    values = np.clip(centres + draw.standard_normal((count, 3)), -4.9, 4.9)
    words = np.where(labels == 1, "leak", "healthy")
    return [[*(f"{value:.6f}" for value in row), str(word)] for row, word in zip(values, words, strict=True)]


@contextmanager
def open_process_works(
    base: Path, prefect_url: str, *, sites: int = 4, rows: int = 120, link: str = "", secret: bytes | None = None
) -> Iterator[ProcessWorks]:
    """Found the works below a folder, start its server and its agents; all of it is stopped at the end.

    With ``link``, settings of a plant link of the caller's own, no server is started. Works with the same ``secret``
    are twins: their plants answer the same questions in the same order with the same bytes.
    """
    home, plants = base / "oem", base / "plants"
    home.mkdir()
    plants.mkdir()
    (plants / "rig.toml").write_text(ASSET)
    (home / "ballast.toml").write_text(
        f'lease_seconds = 3.0\n[nats]\nport = {free_port()}\n{link}[prefect]\napi_url = "{prefect_url}"\n'
    )
    settings = Settings.load(home)
    upgrade(settings.database)
    environment = {
        **os.environ, **QUIET, "BALLAST_HOME": str(home), "BALLAST_BIN": str(BIN), "PREFECT_API_URL": prefect_url,
        "PREFECT_HOME": str(base / "prefect-client"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", **PREFECT_GUARDS,
        "PREFECT_API_AUTH_STRING": PREFECT_SECRET,
    }
    running = ProcessWorks(home, plants, settings, RoundStore.open(settings.database), environment, secret=secret)
    try:
        prepare(running.files, host="127.0.0.1", port=settings.nats.port, host_names=["127.0.0.1"], site_keys={})
        if not link:
            running.start_server()
        running.store.asset_types.add(AssetType.from_toml(plants / "rig.toml"))
        for site in range(sites):
            header = ["flow", "pressure", "speed", "label"]
            running.create_site(f"plant-{site + 1}", rows_of(site, rows, seed=7), header)
            running.start_agent(f"plant-{site + 1}")
        running.wait_for_agents()
        yield running
    finally:
        running.close()
