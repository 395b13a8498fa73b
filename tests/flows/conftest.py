"""A small works in this process: real NATS, database and MLflow; plants behind their own doors, keys and links."""

from __future__ import annotations

import asyncio
import csv
import random
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from flows.publish import keep_draft, register
from flows.wiring import FlowContext
from models.methods.catalogue import METHODS
from services.bus.configuration import BusFiles
from services.bus.server import prepare
from services.contracts.history.run import Run
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.contracts.versions.model_version import ModelVersion
from services.contracts.wire.messages import Hello, Kind, Reveal
from services.coordinator.run_state.training_state import TrainedModel
from services.process.settings import Settings
from services.registry.model_files import document_text, read_document, sha256
from services.round_store.runs import runs
from services.round_store.store import RoundStore
from services.site_agent.connection.link import PlantLink
from services.site_agent.connection.link_address import Address
from services.site_agent.door.local_round import LocalRound
from services.site_agent.door.masked_runs import MaskedRuns
from services.site_agent.outgoing.egress import Egress
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import CsvSource, DataSource
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.reader import Vault
from tests.nats_server import start
from tests.ports import free_port
from tests.waiting import PATIENCE

RIG = AssetType(
    name="rig",
    features=tuple(Feature(name=name, unit="1", low=-5.0, high=5.0) for name in ("flow", "pressure")),
    fault_classes=(FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=3)),
)
SITES = ("plant-1", "plant-2", "plant-3")


def policy(asset_type: AssetType) -> SitePolicy:
    # Every method on the same few rows: more than a plant's policy allows at the start.
    return SitePolicy(
        methods=tuple(METHODS), asset_types=(asset_type.name,), messages=get_args(Kind), exposure_limit=1.0,
        max_runs_per_day=None, reveal=get_args(Reveal), tell_drift=True, tell_exposure=True,
    )


@dataclass(frozen=True)
class InProcessWorks:
    """The OEM's side, and the plants' doors and addresses."""

    context: FlowContext
    doors: dict[str, LocalRound]
    egress: dict[str, Egress]
    addresses: dict[str, Address]
    sources: dict[str, DataSource]
    asset_type: AssetType

    def dataset(self, site: str) -> Dataset:
        return Vault(self.sources[site], self.asset_type).current()

    def plan(self, name: str, **changes: Any) -> Plan:
        values = {
            "name": name, "asset_type": self.asset_type.name, "max_rounds": 40, "gap": 1e-3, "reveal": "each site",
            "sites": tuple(self.doors), "min_sites": 2,
            "gates": {"max_gap": None}, "round_deadline_seconds": 30, "absence_patience_seconds": 5,
        }
        return self.context.store.plans.create(Plan.model_validate(values | changes)).plan

    def train(
        self, plan: Plan, absent: tuple[str, ...] = (), *, registered: bool = True
    ) -> tuple[Run, TrainedModel, ModelVersion]:
        """Join, train, couple, evaluate and register, as the flow does.

        Not ``registered``, the version is the run's draft, read from its document as the registry would.
        """
        return asyncio.run(self._train_run(self.context.store.runs.create_run(plan), absent, registered))

    async def _train_run(
        self, run: Run, absent: tuple[str, ...], registered: bool = True
    ) -> tuple[Run, TrainedModel, ModelVersion]:
        async with self._plants(absent), self.context.plant_link() as transport:
            coordinator = self.context.coordinator(run, transport)
            try:
                run = await coordinator.join(run)
                run = await coordinator.tune(run)
                trained = await coordinator.train(run)
                run = self.context.store.runs.get_run(run.run_id)
                trained = await coordinator.couple(run, trained)
                evaluation = await coordinator.evaluate(run, trained.weights, trained.risk_bound)
                calibrated = await coordinator.calibrate(run, trained.weights)
            except Exception as error:
                self.context.store.runs.finish_run(run.run_id, "failed", str(error))
                raise
        draft = keep_draft(self.context, run, trained, evaluation, calibrated)
        if registered:
            version = register(self.context, run, draft)
        else:
            text = document_text(draft.version)
            version = read_document(text, sha256(text), "the run's draft")
        return self.context.store.runs.finish_run(run.run_id, "completed", "done"), trained, version

    @asynccontextmanager
    async def _plants(self, absent: tuple[str, ...]) -> AsyncIterator[None]:
        stop = asyncio.Event()
        greeted = {site: asyncio.Event() for site in self.addresses if site not in absent}

        def hello(site: str) -> Callable[[], bytes]:
            def frame() -> bytes:
                loop.call_soon_threadsafe(greeted[site].set)
                return self.egress[site].release(Hello(site_id=site, version="test"))

            return frame

        loop = asyncio.get_running_loop()
        links = [
            asyncio.create_task(PlantLink(self.addresses[site], self.doors[site].answer, hello(site)).run(stop))
            for site in greeted
        ]
        await asyncio.wait_for(asyncio.gather(*(event.wait() for event in greeted.values())), PATIENCE)
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*links)


def write_rows(path: Path, number: int, count: int) -> None:
    draw = np.random.default_rng([11, number])
    faulty = np.arange(count) % 2 == 1
    centres = np.where(faulty[:, None], 1.5, -1.5) * np.array([1.0, 0.4]) + 0.3 * number
    values = np.clip(centres + 1.2 * draw.standard_normal((count, 2)), -4.9, 4.9)
    rows = [[*row, "leak" if leak else "healthy"] for row, leak in zip(values.round(6).tolist(), faulty, strict=True)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["flow", "pressure", "label"], *rows])


def small_plants(folder: Path, names: Sequence[str]) -> dict[str, CsvSource]:
    """Files of plants of three kinds, some forty rows each."""
    sources = {}
    for number, site in enumerate(names):
        write_rows(folder / f"{site}.csv", number % 3, 40 + number)
        sources[site] = CsvSource(kind="csv", path=folder / f"{site}.csv")
    return sources


def rig_sources(base: Path) -> dict[str, DataSource]:
    sources: dict[str, DataSource] = {}
    for number, site in enumerate(SITES):
        write_rows(base / f"{site}.csv", number, 48 + 12 * number)
        sources[site] = CsvSource(kind="csv", path=base / f"{site}.csv")
    return sources


def found(
    base: Path, files: BusFiles, port: int, stack: ExitStack, asset_type: AssetType, sources: dict[str, DataSource]
) -> tuple[dict[str, LocalRound], dict[str, Egress], dict[str, Address]]:
    doors, ways, addresses, rules = {}, {}, {}, policy(asset_type)
    for site, source in sources.items():
        folder = base / site
        folder.mkdir(parents=True)
        new_seed_file(folder / "site.nk")
        ledger = stack.enter_context(Ledger(folder / "ledger.jsonl"))
        key, sign = public_key(folder / "site.nk"), signer(folder / "site.nk")
        ways[site] = Egress(ledger, sign, rules.max_message_bytes)
        doors[site] = LocalRound(site, source, asset_type, rules, ways[site], None, MaskedRuns(site, key, sign, rules))
        addresses[site] = Address(
            site, (f"tls://127.0.0.1:{port}",), folder / "site.nk", key, files.authority, needs_tls=True,
        )
    return doors, ways, addresses


@contextmanager
def open_works(
    base: Path, database_url: str, asset_type: AssetType, sources: dict[str, DataSource]
) -> Iterator[InProcessWorks]:
    """The OEM's side in ``base`` with its plants, whose data are given."""
    port = free_port()
    settings = Settings.load(base, {"BALLAST_DATABASE_URL": database_url, "BALLAST_NATS_PORT": str(port)})
    files = BusFiles(settings.bus_folder)
    with ExitStack() as stack:
        # Cohorts are dealt by the run's id: where ids are drawn, a test counts other rounds each time.
        draw, patch = random.Random(11), stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(runs, "new_run_id", lambda: uuid.UUID(int=draw.getrandbits(128)).hex)
        doors, ways, addresses = found(base / "plants", files, port, stack, asset_type, sources)
        keys = {site: address.public_key for site, address in addresses.items()}
        prepare(files, host="127.0.0.1", port=port, host_names=["127.0.0.1"], site_keys=keys)
        server: subprocess.Popen[bytes] = start(files, host="127.0.0.1", port=port)
        stack.callback(server.wait)
        stack.callback(server.kill)
        store = RoundStore.open(settings.database)
        stack.callback(store.close)
        store.asset_types.add(asset_type)
        for site, key in keys.items():
            store.sites.enrol(site, key, [asset_type.name])
        yield InProcessWorks(FlowContext(settings, store), doors, ways, addresses, sources, asset_type)


@pytest.fixture(scope="session")
def opening_works(new_mlflow: Callable[[Path], str]) -> Callable[..., Any]:
    """What opens a works over other plants, in a folder of its own."""

    def opening(base: Path, *given: Any) -> Any:
        new_mlflow(base)
        return open_works(base, *given)

    return opening


@pytest.fixture(scope="module")
def works(
    tmp_path_factory: pytest.TempPathFactory, new_sqlite: Callable[[], str], opening_works: Callable[..., Any]
) -> Iterator[InProcessWorks]:
    base = tmp_path_factory.mktemp("works")
    with opening_works(base, new_sqlite(), RIG, rig_sources(base)) as opened:
        yield opened


@pytest.fixture
def unasked_works(
    tmp_path: Path, new_sqlite: Callable[[], str], opening_works: Callable[..., Any]
) -> Iterator[InProcessWorks]:
    """A works whose plants have told nothing yet: a guard goes by all that has left, and may let a later step not."""
    with opening_works(tmp_path, new_sqlite(), RIG, rig_sources(tmp_path)) as opened:
        yield opened


@pytest.fixture
def store(new_sqlite: Callable[[], str]) -> Iterator[RoundStore]:
    """A store of its own that knows the rig."""
    opened = RoundStore.open(new_sqlite())
    opened.asset_types.add(RIG)
    yield opened
    opened.close()
