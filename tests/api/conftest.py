"""A real application on a real store and a real MLflow, with a trained model in it and a token for each role."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nkeys
import numpy as np
import pytest
import uvicorn
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

from api.app import create_app
from api.backend import looks
from api.backend.actor import Actor
from api.backend.first_keys import begin_with_keys
from api.backend.wiring import Backend, open_backend
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from services.contracts.access.identity import Role
from services.contracts.history.run import RoundRecord, Run, SiteAnswer, SiteTermsRecord
from services.contracts.plans.gates import Gates
from services.contracts.plans.plan import Plan
from services.contracts.problems.lift import SplineLiftSpec
from services.contracts.problems.tuning_curve import TunedCandidate, TuningCurve
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore
from services.plant_simulator.assets import builtin_asset_type
from services.process.settings import Settings
from services.registry.gates import check_gates
from services.registry.mlflow_registry import ModelRegistry
from services.reporting.model_report import model_report
from services.round_store.store import RoundStore
from tests import versions
from tests.conftest import copied, copies, database_name
from tests.ports import free_port
from tests.waiting import PATIENCE

START = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
ROUNDS = 3
SITES = ("plant-east", "plant-west")
MODEL = "pumps"
RUN_ID = "ab" * 16
FOUNDER = Actor("test", Role.ADMINISTRATOR)


def public_key() -> str:
    """A fresh plant's public key."""
    return str(nkeys.from_seed(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)).public_key.decode())


@pytest.fixture(scope="session", autouse=True)
def _looks_have_time() -> Iterator[None]:
    """On a machine at work with much else a registry may be opened for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks, "LOOK_SECONDS", PATIENCE)
        yield


@pytest.fixture(scope="session")
def new_key() -> Callable[[], str]:
    return public_key


def a_plan(name: str, **changes: Any) -> Plan:
    stated = {"reveal": "each site", "gates": Gates(max_gap=1e-3, min_site_f1=0.8)} | changes
    return Plan(name=name, asset_type="triplex-pump", **stated)


def a_curve() -> TuningCurve:
    """What a tuning of two candidates may have found."""
    spline = SplineLiftSpec(kind="spline", segments=6)
    return TuningCurve(
        candidates=(
            TunedCandidate(radius=1.0, label_flip_cost=1.0, score=0.8, folds=3),
            TunedCandidate(radius=3.0, label_flip_cost=1.0, lift=spline, score=0.9, folds=3),
        ),
        chosen=1, why="best of 2 with 0.9", rule="best", folds=3, seed=0, rounds=15, numbers=400.0, bytes_sent=4000,
        bytes_received=5000, budget=3.0, reference_rounds=12, reference_numbers=300.0, base="0" * 64,
    )


def a_version(name: str, run_id: str, *, seed: int = 0, worst_f1: float = 0.9) -> ModelVersion:
    asset_type = builtin_asset_type("triplex-pump")
    shape = (asset_type.heads("classification"), len(asset_type.features) + 1)
    weights = np.random.default_rng(seed).normal(size=shape)
    scores = tuple(
        SiteScore(site_id=site, weight=0.5, radius=1e-3, f1=f1, worst_case_risk=0.3)
        for site, f1 in zip(SITES, (0.95, worst_f1), strict=True)
    )
    return versions.a_version(
        asset_type, weights, name=name, run_id=run_id, plan=name, spec=a_plan(name).spec, rounds=ROUNDS, f1=0.93,
        created_at=START, solvers=("cuts",), sites=scores,
    )


def the_rounds(run_id: str) -> list[RoundRecord]:
    """Three rounds: no bound after the first, one site away in the second."""

    def answer(site: str, number: int) -> SiteAnswer:
        if site == SITES[1] and number == 2:
            return SiteAnswer(site_id=site, status="late", code="deadline", reason=f"no answer from {site} in time")
        return versions.an_answer(site)

    return [
        versions.a_round(
            run_id, number, *(answer(site, number) for site in SITES), started_at=START + timedelta(seconds=number),
            upper=0.25, lower=-math.inf if number == 1 else 0.25 - 0.1 / number,
            gap=math.inf if number == 1 else 0.4 / number,
        )
        for number in range(1, ROUNDS + 1)
    ]


def the_run(name: str, run_id: str) -> Run:
    """The run when its model is registered: one site did not join it."""
    away = SiteAnswer(site_id="plant-north", status="absent", code="no_responders", reason="plant-north is not there")
    return Run(
        run_id=run_id, plan=a_plan(name), status="running", created_at=START, updated_at=START, absentees=(away,),
        sites=tuple(SiteTermsRecord(site_id=site, weight=0.5, radius=1e-3, n_samples=100) for site in SITES),
    )


def register(registry: ModelRegistry, version: ModelVersion) -> str:
    """Register a version with its report, as the flow does; its number."""
    run, rounds = the_run(version.name, version.run_id), the_rounds(version.run_id)
    report = model_report(version, run, rounds, check_gates(run.plan.gates, version))
    return registry.register(version, rounds, report).version


def put_run(store: RoundStore, name: str, run_id: str, version: str) -> None:
    """A finished run with its rounds, as the flow would have left it."""
    run = the_run(name, run_id)
    store.runs.create_run(run.plan, run_id)
    store.runs.begin_run(run_id, run.sites, run.absentees)
    for record in the_rounds(run_id):
        store.runs.commit_round(record, {"weights": np.zeros(3)})
    store.model_versions.add(name, version, run_id, {"f1": 0.93})
    store.runs.set_result(run_id, "mlflow-run", version)
    store.runs.finish_run(run_id, "completed", f"certified; {SITES[1]} missed a round")


def put_model(backend: Backend, name: str, *scores: float) -> list[str]:
    """Register a version for each score of its worst site, each with its run; their numbers."""
    numbers = []
    for index, score in enumerate(scores):
        run_id = os.urandom(16).hex()
        version = a_version(name, run_id, seed=index, worst_f1=score)
        numbers.append(register(backend.registry, version))
        put_run(backend.store, name, run_id, numbers[-1])
    return numbers


@pytest.fixture(scope="session")
def mlflow_settings(
    tmp_path_factory: pytest.TempPathFactory, new_mlflow: Callable[[Path], str]
) -> dict[str, str]:
    """One real MLflow for all tests, with a champion; tests that change models use names of their own."""
    home = tmp_path_factory.mktemp("mlflow")
    settings = {"tracking_uri": new_mlflow(home), "artifact_root": (home / "artifacts").as_uri()}
    registry = ModelRegistry(settings["tracking_uri"], settings["artifact_root"])
    registry.promote(MODEL, register(registry, a_version(MODEL, RUN_ID)))
    return settings


@dataclass(frozen=True)
class World:
    """The application, what is behind it, and a token for each role."""

    portal: BlockingPortal
    app: FastAPI
    backend: Backend
    settings: Settings
    tokens: dict[Role, str]

    def call(self, role: Role | None, method: str, path: str, json: Any = None, **more: Any) -> Response:
        """Answer to a request of a role; None: without a token."""
        headers = {"Authorization": f"Bearer {self.tokens[role]}"} if role else {}
        if json is not None:
            more["json"] = json

        async def ask() -> Response:
            transport = ASGITransport(self.app, raise_app_exceptions=False)
            async with AsyncClient(transport=transport, base_url="http://ballast") as client:
                return await client.request(method, path, headers=headers | more.pop("headers", {}), **more)

        return self.portal.call(ask)

    def events(self) -> list[str]:
        """Actions in the audit trail, newest first, without the ones of the beginning."""
        found = self.backend.store.audit.list_events(limit=1000)
        return [event.action for event in found if event.actor != FOUNDER.name]

    def snapshot(self) -> dict[str, int]:
        """Number of rows of every table: a refused request must not change one."""
        from tests.oracles.store_walk import all_columns

        counts: dict[str, int] = {}
        for cell in all_columns(self.backend.store.engine):
            if cell.column != "last_used_at":
                counts[cell.table] = counts.get(cell.table, 0) + hash((cell.column, str(cell.value)))
        return counts

    def new_model(self, name: str, *scores: float) -> list[str]:
        """Register a version for each score of its worst site, each with its run; their numbers."""
        return put_model(self.backend, name, *scores)


def fill(store: RoundStore) -> None:
    """Two plants, a plan, and a run that gave a version."""
    store.asset_types.add(builtin_asset_type("triplex-pump"))
    store.asset_types.add(builtin_asset_type("triplex-pump-severity"))
    for site in SITES:
        store.sites.enrol(site, public_key(), ["triplex-pump"])
    store.plans.create(a_plan(MODEL, sites=SITES))
    put_run(store, MODEL, RUN_ID, "1")


def make_tokens(backend: Backend) -> dict[Role, str]:
    wanted = [TokenRequest(name=f"the {role.value}", role=role) for role in Role]
    return {request.role: tokens.create(backend, FOUNDER, request).token for request in wanted}


@dataclass(frozen=True)
class FilledDatabases:
    """Copies of a database that was filled once, and the tokens that hold in each."""

    new: Callable[[], str]
    tokens: dict[Role, str]


def filled_once(home: Path, database_url: str, mlflow: dict[str, str]) -> dict[Role, str]:
    """Fill a database; its tokens."""
    settings = Settings.model_validate({"home": home, "database_url": database_url, "mlflow": mlflow})
    with open_backend(settings) as backend:
        fill(backend.store)
        return make_tokens(backend)


@pytest.fixture(scope="session")
def filled_sqlite(
    tmp_path_factory: pytest.TempPathFactory, new_sqlite: Callable[[], str], mlflow_settings: dict[str, str]
) -> FilledDatabases:
    """Filled databases on SQLite."""
    home, template = tmp_path_factory.mktemp("filled"), new_sqlite()
    made = filled_once(home, template, mlflow_settings)
    copied(Path(template.removeprefix("sqlite:///")), home / "filled.db")
    return FilledDatabases(copies(home / "filled.db", home), made)


@pytest.fixture(scope="session")
def filled_postgresql(
    tmp_path_factory: pytest.TempPathFactory, new_postgresql: Callable[[], str],
    empty_postgresql: Callable[..., str], mlflow_settings: dict[str, str],
) -> FilledDatabases:
    """Filled databases on PostgreSQL."""
    template = new_postgresql()
    made = filled_once(tmp_path_factory.mktemp("filled"), template, mlflow_settings)
    return FilledDatabases(lambda: empty_postgresql(database_name(template)), made)


@contextmanager
def open_world(
    home: Path, database_url: str, mlflow: dict[str, str], *, filled: bool = True,
    known: dict[Role, str] | None = None, **more: Any,
) -> Iterator[World]:
    """An application on a database, which is filled here unless it was before: ``known`` are its tokens then."""
    settings = Settings.model_validate({"home": home, "database_url": database_url, "mlflow": mlflow, **more})
    with open_backend(settings) as backend:
        if filled and known is None:
            fill(backend.store)
        made = make_tokens(backend) if known is None else known
        app = create_app(settings)
        lifespan = app.router.lifespan_context(app)
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(lifespan):
            yield World(portal, app, backend, settings, made)


@pytest.fixture
def world(tmp_path: Path, filled_sqlite: FilledDatabases, mlflow_settings: dict[str, str]) -> Iterator[World]:
    """The application on SQLite."""
    with open_world(tmp_path, filled_sqlite.new(), mlflow_settings, known=filled_sqlite.tokens) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgresql"])
def any_world(request: pytest.FixtureRequest, tmp_path: Path, mlflow_settings: dict[str, str]) -> Iterator[World]:
    """The application on SQLite and on PostgreSQL."""
    filled: FilledDatabases = request.getfixturevalue(f"filled_{request.param}")
    with open_world(tmp_path, filled.new(), mlflow_settings, known=filled.tokens) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_world(
    tmp_path_factory: pytest.TempPathFactory, filled_sqlite: FilledDatabases, mlflow_settings: dict[str, str]
) -> Iterator[World]:
    """One application for all tests that change nothing."""
    home, filled = tmp_path_factory.mktemp("home"), filled_sqlite
    with open_world(home, filled.new(), mlflow_settings, known=filled.tokens) as opened:
        begin_with_keys(opened.settings)  # as a process of its own does: the first use of a key enters it in the store
        yield opened


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def lasting_world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, mlflow_settings: dict[str, str]
) -> Iterator[World]:
    """One application on each server for all tests of what is refused: they show that it changes nothing."""
    filled: FilledDatabases = request.getfixturevalue(f"filled_{request.param}")
    home = tmp_path_factory.mktemp("home")
    with open_world(home, filled.new(), mlflow_settings, known=filled.tokens) as opened:
        begin_with_keys(opened.settings)
        yield opened


@pytest.fixture(scope="session")
def opening() -> Callable[..., Any]:
    """What opens an application, for fixtures of a wider scope."""
    return open_world


@pytest.fixture(scope="session")
def a_model() -> Callable[..., list[str]]:
    """Register versions of a model, each with its run, in a backend."""
    return put_model


@pytest.fixture(scope="session")
def a_registered() -> Callable[..., tuple[ModelVersion, Run, list[RoundRecord]]]:
    """Register a version without a report, and its run."""

    def put(backend: Backend, name: str) -> tuple[ModelVersion, Run, list[RoundRecord]]:
        run_id = os.urandom(16).hex()
        made = backend.registry.register(a_version(name, run_id), the_rounds(run_id), {"text": "no report"})
        put_run(backend.store, name, run_id, made.version)
        return made, backend.store.runs.get_run(run_id), backend.store.runs.get_rounds(run_id)

    return put


@pytest.fixture
def server(world: Any) -> Iterator[str]:
    """The world's application on a port."""
    port = free_port()
    config = uvicorn.Config(create_app(world.settings), port=port, log_level="error", timeout_graceful_shutdown=1)
    served = uvicorn.Server(config)
    thread = threading.Thread(target=served.run)
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while not served.started and time.monotonic() < deadline:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    served.should_exit = True
    thread.join(PATIENCE)
