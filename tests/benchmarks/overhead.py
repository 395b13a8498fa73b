"""What a round costs beside the local solves: ``python -m tests.benchmarks.overhead [--sites 4] [--json FILE]``.

Real parts throughout: site agents as processes, NATS with TLS and nkeys, signatures, the egress ledger with its fsync,
admission, the method's server step, the commit to SQLite. Up to eight plants have a process each; more share
``--processes``, each with its own connection, key, vault and ledger. ``round_ms`` is the wall time of a whole round,
``local_ms`` what the local solves take of it: one solve by itself, times the solves that a core has to do one after
another. ``overhead_ms`` is the difference. ``server_cpu_ms`` and ``site_cpu_ms`` are processor time of a round: the
coordinator's, and that of one plant's agent, its local solve among it.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import asyncio  # noqa: E402
import json  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator, Sequence  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from models.methods.catalogue import check_parameters, get_method  # noqa: E402
from models.multiclass import head_labels  # noqa: E402
from models.one_vs_rest import OneVsRestServer, answer_heads  # noqa: E402
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms  # noqa: E402
from services.contracts.history.run import RoundRecord  # noqa: E402
from services.contracts.plans.plan import Plan  # noqa: E402
from services.contracts.wire.masking import LEAST_MEMBERS  # noqa: E402
from services.coordinator.asking.nats_transport import NatsTransport  # noqa: E402
from services.coordinator.training import Coordinator  # noqa: E402
from tests.benchmarks.command import at_least, output_file  # noqa: E402
from tests.journeys.works import ProcessWorks, open_process_works, rows_of  # noqa: E402

TARGETS_MS = {4: 25.0, 200: 120.0}
ROWS, OWN_PROCESS = 120, 8
HEADER = ["flow", "pressure", "speed", "label"]
RUNS = (("level-bundle", "each site"), ("fdr-sm", "each site"), ("cohort-bundle", "sums"))


class Agents:
    """The plants' processes, and the processor time that they have used."""

    def __init__(self, works: ProcessWorks, sites: Sequence[str], processes: int) -> None:
        files = [str(works.plants / site / "site.toml") for site in sites]
        self._running = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.benchmarks.agents_together", *files[place::processes]],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=works.environment,
            )
            for place in range(processes)
        ]
        for process in self._running:
            self._line(process)

    def cpu_seconds(self) -> float:
        """Processor time of all of them until now."""
        for process in self._running:
            process.send_signal(signal.SIGUSR1)
        return sum(float(self._line(process).split()[1]) for process in self._running)

    def close(self) -> None:
        """End them."""
        for process in self._running:
            process.kill()
            process.wait()

    @staticmethod
    def _line(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline()


@contextmanager
def many_plants(folder: Path, sites: int, processes: int) -> Iterator[tuple[ProcessWorks, Agents]]:
    """A works with that many plants that answer."""
    with open_process_works(folder, "http://127.0.0.1:9/api", sites=0) as works:
        names = [f"plant-{number + 1}" for number in range(sites)]
        for number, name in enumerate(names):
            works.create_site(name, rows_of(number % 7, ROWS, seed=number), HEADER)
        agents = Agents(works, names, sites if sites <= OWN_PROCESS else processes)
        try:
            yield works, agents
        finally:
            agents.close()


def measure(
    works: ProcessWorks, agents: Agents, sites: int, method: str, reveal: str, rounds: int
) -> dict[str, object]:
    """Rounds of one method with all agents, and the local solve by itself."""
    stamps, server, agent = asyncio.run(train(works, agents, sites, method, reveal, rounds))
    walls = np.diff(stamps) * 1e3
    local = local_solve_ms(method) * -(-sites // (os.cpu_count() or 1))
    target = TARGETS_MS.get(sites)
    return {
        "method": method, "reveal": reveal, "sites": sites, "rounds": len(stamps),
        "round_ms": float(np.median(walls)), "round_ms_p99": float(np.quantile(walls, 0.99)), "local_ms": local,
        "overhead_ms": float(np.median(walls)) - local, "server_cpu_ms": server * 1e3 / len(stamps),
        "site_cpu_ms": agent * 1e3 / len(stamps) / sites, "target_ms": target,
        "ratio_to_target": None if target is None else (float(np.median(walls)) - local) / target,
    }


async def train(
    works: ProcessWorks, agents: Agents, sites: int, method: str, reveal: str, rounds: int
) -> tuple[list[float], float, float]:
    """Moments at which rounds were committed; processor time of the coordinator and of all agents meanwhile."""
    plan = Plan(
        name=f"overhead-{method}", asset_type="rig", method=method, gap=1e-12, max_rounds=rounds, min_sites=sites,
        reveal=reveal, parameters={}, warm_start=False, round_deadline_seconds=60,
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
        at_sites, server = agents.cpu_seconds(), time.process_time()
        await coordinator.train(run, note)
        at_sites, server = agents.cpu_seconds() - at_sites, time.process_time() - server
        works.store.runs.finish_run(run.run_id, "completed", "measured")
    finally:
        await transport.close()
    return stamps, server, at_sites


def local_solve_ms(name: str) -> float:
    """Median time of one site's local answer over the first rounds of the method."""
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
    parser.add_argument("--json", type=output_file, help="write the rows here")
    parser.add_argument("--sites", type=at_least(), default=4, help="plants; below three nothing is summed")
    parser.add_argument("--processes", type=at_least(), default=2, help="of the agents, where they are more than eight")
    parser.add_argument("--rounds", type=at_least(2), default=40)
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, many_plants(Path(folder), wanted.sites, wanted.processes) as works:
        runs = [each for each in RUNS if each[1] != "sums" or wanted.sites >= LEAST_MEMBERS]
        rows = [measure(*works, wanted.sites, method, reveal, wanted.rounds) for method, reveal in runs]
    figures = ("round_ms", "round_ms_p99", "local_ms", "overhead_ms", "server_cpu_ms", "site_cpu_ms")
    print(f"{'method':<16}{'sites':>6}" + "".join(f"{name:>15}" for name in figures))
    for row in rows:
        print(f"{row['method']:<16}{row['sites']:>6}" + "".join(f"{row[name]:>15.2f}" for name in figures))
    if wanted.json:
        wanted.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return int(any(row["ratio_to_target"] is not None and float(str(row["ratio_to_target"])) > 1.0 for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
