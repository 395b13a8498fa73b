"""Time of a diagnosis through the REST API: ``python -m tests.benchmarks.api [--json FILE]``.

A real uvicorn on loopback, SQLite and MLflow behind it, and a bounded number of requests. Each row: how it was called
(``asgi``: in the same process, ``http``: over a socket that stays open), samples in a request, clients at a time,
requests, milliseconds a request (median and 99th percentile), and requests a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from api.app import create_app
from api.backend.actor import local_administrator
from api.backend.wiring import open_backend
from api.models.examples import FEATURES_EXAMPLE
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from migrations.run import upgrade
from models.methods.protocol import WORST_CASE
from services.contracts.access.identity import Role
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.plant_simulator.assets import builtin_asset_type
from services.process.settings import Settings
from services.registry.mlflow_environment import mlflow_environment
from tests.benchmarks.command import output_file

TARGET_MILLISECONDS = 5.0
CASES = (("asgi", 1, 1, 500), ("http", 1, 1, 500), ("http", 1, 8, 800), ("http", 100, 1, 100), ("http", 10_000, 1, 5))
PATH = "/v1/models/benchmark/diagnose"
Post = Callable[[bytes], Awaitable[httpx.Response]]


def prepare(home: Path) -> tuple[Settings, str]:
    """A home with a database, a champion and a viewer's token."""
    settings = Settings.load(home, environment={})
    upgrade(settings.database)
    asset_type = builtin_asset_type("triplex-pump")
    weights = np.random.default_rng(0).normal(size=(asset_type.heads("classification"), len(asset_type.features) + 1))
    version = ModelVersion(
        name="benchmark", run_id="0" * 32, plan="benchmark", method="level-bundle", asset_type=asset_type,
        spec=TrainingSpec(), weights=weights, rounds=1, certified_gap=0.0,
        worst_case_risk=1.0, objective=1.0, objective_name=WORST_CASE,
        lower_bound=1.0,
        fresh_weight=1.0, created_at=datetime.now(UTC),
    )
    with open_backend(settings) as backend:
        registered = backend.registry.register(version, (), {})
        backend.registry.promote("benchmark", registered.version)
        made = tokens.create(backend, local_administrator(), TokenRequest(name="benchmark", role=Role.VIEWER))
    return settings, made.token


async def measure(post: Post, n_samples: int, clients: int, requests: int) -> dict[str, float]:
    """One row's figures."""
    body = json.dumps({"samples": [FEATURES_EXAMPLE] * n_samples}).encode()
    seconds: list[float] = []

    async def client(count: int) -> None:
        for _ in range(count):
            started = time.perf_counter()
            answer = await post(body)
            seconds.append(time.perf_counter() - started)
            if answer.status_code != 200:
                raise RuntimeError(f"the API answered {answer.status_code}: {answer.text[:200]}")

    await client(3)
    seconds.clear()
    started = time.perf_counter()
    await asyncio.gather(*(client(requests // clients) for _ in range(clients)))
    elapsed = time.perf_counter() - started
    return {
        "milliseconds": 1e3 * float(np.median(seconds)),
        "milliseconds_p99": 1e3 * float(np.quantile(seconds, 0.99)),
        "requests_per_second": len(seconds) / elapsed,
    }


async def all_rows(settings: Settings, token: str, url: str) -> list[dict[str, Any]]:
    """Every case, in this process and against the server."""
    app = create_app(settings)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    inside = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://inside", headers=headers)
    outside = httpx.AsyncClient(base_url=url, headers=headers, timeout=60.0)
    rows = []
    async with app.router.lifespan_context(app), inside, outside:
        for way, n_samples, clients, requests in CASES:
            chosen = inside if way == "asgi" else outside

            async def post(body: bytes, chosen: httpx.AsyncClient = chosen) -> httpx.Response:
                return await chosen.post(PATH, content=body)

            found = await measure(post, n_samples, clients, requests)
            rows.append({"way": way, "samples": n_samples, "clients": clients, "requests": requests, **found})
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; 1 when a diagnosis in the same process misses the target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows as JSON")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        settings, token = prepare(Path(scratch))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        program = [sys.executable, "-m", "uvicorn", "--factory", "api.app:create_app", "--port", str(port)]
        server = subprocess.Popen(
            [*program, "--log-level", "warning"], env=mlflow_environment() | {"BALLAST_HOME": scratch}
        )
        try:
            wait_ready(server, url)
            rows = asyncio.run(all_rows(settings, token, url))
        finally:
            server.terminate()
            server.wait(timeout=10)
    for row in rows:
        shown = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}
        print("  ".join(f"{name} {value}" for name, value in shown.items()))
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return int(rows[0]["milliseconds"] > TARGET_MILLISECONDS)


def wait_ready(server: subprocess.Popen[bytes], url: str, seconds: float = 60.0) -> None:
    """Wait until the server is ready."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx.get(f"{url}/readyz", timeout=10.0).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError("the API did not become ready")


if __name__ == "__main__":
    sys.exit(main())
