"""What a round costs beside the local solves: ``python -m tests.benchmarks.overhead [--json FILE]``.

Real parts throughout: four site agents as processes, NATS with TLS and nkeys, signatures, the egress ledger with its
fsync, admission, the method's server step, the commit to SQLite. ``round_ms`` is the wall time of a whole round;
``local_ms`` the time of the largest site's local solve, measured by itself; ``overhead_ms`` the difference.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from models.methods.catalogue import check_parameters, get_method
from models.multiclass import OneVsRestServer, answer_heads, head_labels
from models.problem import ServerProblem, SiteTerms
from services.contracts.plan import Plan
from services.contracts.run import RoundRecord
from services.coordinator.nats_transport import NatsTransport
from services.coordinator.training import Coordinator
from tests.journeys.works import ProcessWorks, open_process_works, rows_of

TARGET_MS = 25.0
ROWS = 120


def measure(works: ProcessWorks, method: str, rounds: int) -> dict[str, object]:
    """Rounds of one method with all agents, and the local solve by itself."""
    stamps = asyncio.run(train(works, method, rounds))
    walls = np.diff(stamps) * 1e3
    local = local_solve_ms(method)
    overhead = walls - local
    return {
        "method": method, "sites": len(works.agents), "rounds": len(stamps), "round_ms": float(np.median(walls)),
        "round_ms_p99": float(np.quantile(walls, 0.99)), "local_ms": local, "overhead_ms": float(np.median(overhead)),
        "target_ms": TARGET_MS, "ratio_to_target": float(np.median(overhead)) / TARGET_MS,
    }


async def train(works: ProcessWorks, method: str, rounds: int) -> list[float]:
    """Moments at which rounds were committed."""
    plan = Plan(
        name=f"overhead-{method}", asset_type="rig", method=method, gap=1e-12, max_rounds=rounds, min_sites=4,
        parameters={},
    )
    settings = works.settings
    transport = NatsTransport(settings.nats_servers, settings.nats_seed, settings.nats_authority)
    await transport.connect()
    stamps: list[float] = []

    async def note(_: RoundRecord) -> None:
        stamps.append(time.perf_counter())

    try:
        keys = {site.site_id: site.public_key for site in works.store.sites.list_sites("active")}
        asset_type = works.store.asset_types.get("rig").asset_type
        coordinator = Coordinator(works.store.runs, transport, keys, asset_type)
        run = await coordinator.join(works.store.runs.create_run(plan))
        await coordinator.train(run, note)
        works.store.runs.finish_run(run.run_id, "completed", "measured")
    finally:
        await transport.close()
    return stamps


def local_solve_ms(name: str) -> float:
    """Median time of one site's local answer over the first rounds of the method."""
    from models.problem import RobustSpec, SiteProblem

    method = get_method(name)
    rows = rows_of(0, ROWS, seed=7)
    features = (np.array([[float(value) for value in row[:3]] for row in rows]) + 5.0) / 10.0
    classes = np.array([int(row[3] == "leak") for row in rows])
    parameters = check_parameters(method, {})
    spec = RobustSpec(radius=0.1 / ROWS, label_flip_cost=1.0)
    problem = ServerProblem(3, (SiteTerms("a", 1.0, spec.radius, 1.0),), "l2", True, parameters=parameters)
    server, heads = OneVsRestServer(method.server, 1), [SiteProblem(features, head_labels(classes, 2)[0], spec)]
    state, times = server.init(problem), []
    for _ in range(20):
        message = server.messages(state, problem)["a"]
        started = time.perf_counter()
        answer = answer_heads(method.site, heads, message, parameters)
        times.append(time.perf_counter() - started)
        state = server.step(state, problem, {"a": answer})
    return float(np.median(times) * 1e3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and tell by the exit code whether the target was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the rows here")
    parser.add_argument("--rounds", type=int, default=60)
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, open_process_works(Path(folder), "http://127.0.0.1:9/api") as works:
        rows = [measure(works, method, wanted.rounds) for method in ("level-bundle", "fdr-sm")]
    print(f"{'method':<20}{'sites':>6}{'round ms':>10}{'p99':>8}{'local ms':>10}{'overhead ms':>13}")
    for row in rows:
        print(f"{row['method']:<20}{row['sites']:>6}{row['round_ms']:>10.2f}{row['round_ms_p99']:>8.2f}"
              f"{row['local_ms']:>10.2f}{row['overhead_ms']:>13.2f}")
    if wanted.json:
        wanted.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return int(any(float(str(row["overhead_ms"])) > TARGET_MS for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
