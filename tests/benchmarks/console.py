"""Time of the console's pages over a large store: ``python -m tests.benchmarks.console [--json FILE]``.

SQLite and MLflow with 200 plants, 20 plans with 1,000 runs, 100,000 rounds and a million answers, asked in this process
by somebody who is signed in. Each row: the page, the statements on the store, the milliseconds of the first time and of
the median and the slowest of 40 more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import numpy as np
from sqlalchemy import event

from api.app import create_app
from api.backend.actor import local_administrator
from api.backend.wiring import open_backend
from api.models import service as models
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from api.web.sessions import COOKIE
from migrations.run import upgrade
from services.contracts.access.identity import Role
from services.contracts.history.run import SiteTermsRecord
from services.contracts.plans.gates import Gates
from services.contracts.plans.plan import Plan
from services.contracts.versions.version_facts import SiteScore
from services.plant_simulator.assets import builtin_asset_type
from services.process.settings import Settings
from services.round_store.database.documents import document
from tests import versions
from tests.benchmarks.command import output_file

TARGET_MILLISECONDS = 150.0
PLANTS, PLANS, RUNS, ROUNDS, ANSWERING, TIMES = 200, 20, 1000, 100, 10, 40
"""``ROUNDS`` of each run, ``ANSWERING`` plants in each round."""
START = datetime(2026, 1, 1, tzinfo=UTC)


def sites() -> list[str]:
    """Ids of the plants."""
    return [f"plant-{number:03d}" for number in range(PLANTS)]


def prepare(home: Path) -> tuple[Settings, str, dict[str, str]]:
    """A home with the large store, a champion over all plants, an administrator's token, and the pages to ask for."""
    settings = Settings.load(home, environment={})
    upgrade(settings.database)
    asset_type = builtin_asset_type("triplex-pump")
    with open_backend(settings) as backend:
        backend.registry.prepare()
        store = backend.store
        store.asset_types.add(asset_type)
        for place, site in enumerate(sites()):
            store.sites.enrol(site, f"U{place:055d}", [asset_type.name])
        store.sites.connected(sites()[: PLANTS - 7])
        kept = {"asset_type": asset_type.name, "gates": Gates(max_gap=None)}
        made = [store.plans.create(Plan(name=f"plan-{each:02d}", **kept)).plan for each in range(PLANS)]
        runs = fill(Path(settings.database.removeprefix("sqlite:///")), made)
        shape = (asset_type.heads("classification"), len(asset_type.features) + 1)
        for name, run_id in list(runs.items())[:3]:
            scores = tuple(
                SiteScore(site_id=site, weight=1 / PLANTS, radius=1e-3, f1=0.9, worst_case_risk=0.3, loss=0.1)
                for site in sites()
            )
            version = versions.a_version(
                asset_type, np.zeros(shape), name=name, run_id=run_id, plan=name, sites=scores, f1=0.9,
            )
            number = backend.registry.register(version, [], {"text": "no report"}).version
            store.model_versions.add(name, number, run_id, {})
            models.promote(backend, local_administrator(), name, number, "benchmark", ignore_gates=True)
        wanted = TokenRequest(name="benchmark", role=Role.ADMINISTRATOR)
        token = tokens.create(backend, local_administrator(), wanted).token
    first, run_id = next(iter(runs.items()))
    return settings, token, {
        "fleet": "/console", "runs": "/console/runs", "run": f"/console/runs/{run_id}",
        "model": f"/console/models/{first}/versions/1", "fairness": f"/console/models/{first}/versions/1/fairness",
        "plans": "/console/plans", "plan": f"/console/plans/{first}", "privacy": "/console/privacy",
        "audit": "/console/audit", "admin": "/console/admin",
    }


def fill(path: Path, plans: Sequence[Plan]) -> dict[str, str]:
    """Write runs, rounds and answers straight into the tables; the newest run of each plan, by the plan's name."""
    newest = {}
    with closing(sqlite3.connect(path)) as connection, connection:
        for number in range(RUNS):
            plan, run_id = plans[number % PLANS], uuid.UUID(int=number + 1).hex
            at = START + timedelta(hours=number)
            mine = [sites()[(number * ANSWERING + each) % PLANTS] for each in range(ANSWERING)]
            terms = [SiteTermsRecord(site_id=site, weight=1 / ANSWERING, radius=1e-3, n_samples=100) for site in mine]
            newest[plan.name] = run_id
            moment = at.replace(tzinfo=None).isoformat(sep=" ")
            connection.execute(
                "INSERT INTO runs (run_id, plan_name, plan, status, reason, created_at, updated_at, rounds, sites, "
                "absentees, excluded, upper, lower, gap, fresh_weight, cancel_requested) "
                "VALUES (?, ?, ?, 'completed', '', ?, ?, ?, ?, '[]', '[]', 1.0, 0.999, 0.001, 1.0, 0)",
                (run_id, plan.name, json.dumps(document(plan)), moment, moment, ROUNDS,
                 json.dumps([document(each) for each in terms])),
            )
            connection.executemany(
                "INSERT INTO rounds (run_id, round, started_at, seconds, overhead_seconds, upper, lower, gap, "
                "fresh_weight, committed_at) VALUES (?, ?, ?, 0.1, 0.01, ?, 0.9, 0.01, 1.0, ?)",
                [(run_id, each, moment, 1.0 + 1.0 / each, moment) for each in range(1, ROUNDS + 1)],
            )
            connection.executemany(
                "INSERT INTO site_updates (run_id, round, site_id, status, code, reason, bytes_in, bytes_out, seconds, "
                "payload_sha256) VALUES (?, ?, ?, 'accepted', '', '', 900, 700, 0.01, '')",
                [(run_id, each, site) for each in range(1, ROUNDS + 1) for site in mine],
            )
    return newest


async def measure(settings: Settings, token: str, pages: dict[str, str]) -> list[dict[str, Any]]:
    """Times of the pages, by somebody who is signed in."""
    app = create_app(settings)
    rows = []
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="https://ballast", timeout=60) as client:
            opened = await client.post(
                "/console/sign-in", data={"token": token}, headers={"Origin": "https://ballast"}
            )
            client.cookies.set(COOKIE, opened.cookies[COOKIE])
            statements: list[str] = []
            event.listen(
                app.state.backend.store.engine, "before_cursor_execute",
                lambda _c, _k, statement, *_: statements.append(statement),
            )
            for name, path in pages.items():
                times = []
                for _ in range(TIMES + 1):
                    statements.clear()
                    began = time.perf_counter()
                    answer = await client.get(path)
                    times.append(1000 * (time.perf_counter() - began))
                    answer.raise_for_status()
                counted = [each for each in statements if not each.startswith("BEGIN")]
                rows.append({
                    "page": name, "statements": len(counted), "kilobytes": len(answer.content) / 1000,
                    "first_ms": times[0], "median_ms": median(times[1:]), "slowest_ms": max(times[1:]),
                })
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 when the first page took longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=output_file, help="file for the rows")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        settings, token, pages = prepare(Path(folder))
        print(f"{PLANTS} plants, {RUNS} runs, {RUNS * ROUNDS} rounds, {RUNS * ROUNDS * ANSWERING} answers "
              f"(made in {time.perf_counter() - began:.0f} s)")
        rows = asyncio.run(measure(settings, token, pages))
    print(f"{'page':10} {'statements':>10} {'kB':>7} {'first ms':>9} {'median ms':>10} {'slowest ms':>11}")
    for row in rows:
        print(f"{row['page']:10} {row['statements']:10} {row['kilobytes']:7.0f} {row['first_ms']:9.1f} "
              f"{row['median_ms']:10.1f} {row['slowest_ms']:11.1f}")
    if wanted.json:
        wanted.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(rows[0]["median_ms"] > TARGET_MILLISECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
