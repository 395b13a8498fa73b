"""The console in a real Chromium, on a real API over a real store, registry and NATS server, with four plants' agents.

Skipped, with the reason, where Playwright's Python client or a Chromium is not there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn

from api.app import create_app
from api.backend.actor import Actor
from api.backend.wiring import Backend, open_backend
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from flows.publish import end_of_tuning, keep_draft, register
from services.contracts.access.identity import Role
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan
from services.site_agent.door.local_round import LocalRound
from services.site_agent.settings import CsvSource
from tests.flows.conftest import RIG, InProcessWorks, open_works, write_rows
from tests.ports import free_port

PLANTS = tuple(f"plant-{number}" for number in range(1, 5))
PLAN = "rig-leak"
ROUND_SECONDS = 0.05
"""What a plant takes longer for its answer, so that there is something to watch."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str:
    found = os.environ.get("BALLAST_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), "")
    if not found:
        pytest.skip("no Chromium found: install one, or name it in BALLAST_CHROMIUM")
    return found


@dataclass
class Site:
    """The served console and what is behind it."""

    url: str
    backend: Backend
    works: InProcessWorks
    tokens: dict[Role, str]
    driver: Driver = field(repr=False)


class Slow:
    """A plant's door that takes its time for a round."""

    def __init__(self, door: Any) -> None:
        self._door = door

    def answer(self, *task: Any) -> Any:
        time.sleep(ROUND_SECONDS)
        return self._door.answer(*task)


class Driver:
    """Drives pending runs as the flows process does, in a thread: join, tune alone, or train, evaluate, register."""

    def __init__(self, works: InProcessWorks) -> None:
        self._works = works
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self.failures: list[str] = []

    def __enter__(self) -> Driver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _loop(self) -> None:
        runs = self._works.context.store.runs
        while not self._stop.wait(0.1):
            self._works.context.store.sites.connected(PLANTS)
            for run in runs.unfinished_runs():
                try:
                    asyncio.run(self._drive(run))
                except Exception as error:
                    self.failures.append(f"{type(error).__name__}: {error}")
                    runs.finish_run(run.run_id, "failed", str(error))

    async def _drive(self, run: Run) -> None:
        context = self._works.context
        async with self._works._plants(()), context.plant_link() as transport:
            coordinator = context.coordinator(run, transport)
            run = await coordinator.join(run)
            if run.plan.tunes_only:
                end_of_tuning(context, await coordinator.tune(run))
                return
            trained = await coordinator.train(run)
            run = context.store.runs.get_run(run.run_id)
            evaluation = await coordinator.evaluate(run, trained.weights, trained.risk_bound)
        register(context, run, keep_draft(context, run, trained, evaluation))
        context.store.runs.finish_run(run.run_id, "completed", "certified")


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, new_sqlite: Callable[[], str], new_mlflow: Callable[[Path], str]
) -> Iterator[Site]:
    """The console over four plants that nobody has trained on yet; of a module, for each counts its versions."""
    base = tmp_path_factory.mktemp("console")
    new_mlflow(base)
    sources = {}
    for number, name in enumerate(PLANTS):
        write_rows(base / f"{name}.csv", number, 48 + 12 * number)
        sources[name] = CsvSource(kind="csv", path=base / f"{name}.csv")
    with open_works(base, new_sqlite(), RIG, sources) as works:
        works.doors.update({name: cast(LocalRound, Slow(door)) for name, door in works.doors.items()})
        store = works.context.store
        for name in PLANTS:
            store.sites.seen(name, "1.0")
        store.plans.create(Plan(
            name=PLAN, asset_type=RIG.name, reveal="each site", min_sites=3, max_rounds=60, cron="0 3 * * 1",
            auto_promote=False, warm_start=False, gates={"max_gap": 1e-2, "min_f1": 0.5},
        ))
        with open_backend(works.context.settings) as backend:
            made = {
                role: tokens.create(
                    backend, Actor("test", Role.ADMINISTRATOR), TokenRequest(name=f"Ada the {role.value}", role=role)
                ).token
                for role in Role
            }
            with Driver(works) as driver, serving(create_app(works.context.settings)) as url:
                yield Site(url, backend, works, made, driver)


class serving:  # noqa: N801 - reads as what it does
    """Serve an application on a free port of the loopback."""

    def __init__(self, app: Any) -> None:
        self._port = free_port()
        config = uvicorn.Config(app, host="127.0.0.1", port=self._port, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the API did not start")
            time.sleep(0.05)
        return f"http://127.0.0.1:{self._port}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(20)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium of this machine. Of a module, for its client keeps an event loop, beside which no other may run."""
    api = pytest.importorskip("playwright.sync_api", reason="browser tests need Playwright's Python client")
    path = find_chromium()
    with api.sync_playwright() as playwright:
        with closing(playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])) as opened:
            yield opened


@dataclass
class Seen:
    """A page, with all that it asked for and all that it complained of."""

    page: Any
    url: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(self.url + path, wait_until="load")

    def sign_in(self, token: str) -> None:
        self.open("/console/sign-in")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"{self.url}/console")

    def check(self) -> None:
        """Nothing was asked of another origin, and the browser complained of nothing."""
        strangers = [address for address in self.requests if not address.startswith((self.url, "data:"))]
        assert strangers == []
        assert self.complaints == []


@pytest.fixture
def looking(browser: Any, site: Site) -> Iterator[Callable[..., Seen]]:
    """Open a window; ``scheme`` is the system's look, ``script`` whether it runs scripts."""
    contexts = []

    def look(scheme: str = "light", width: int = 1280, *, script: bool = True, height: int = 900) -> Seen:
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": height}, java_script_enabled=script,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        seen = Seen(page, site.url)
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("console", lambda said: seen.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        return seen

    yield look
    for context in contexts:
        context.close()
