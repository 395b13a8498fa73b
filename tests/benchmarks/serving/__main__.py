"""Ours and ``mlflow models serve`` on one version in one run: ``python -m tests.benchmarks.serving [--json FILE]``.

Both are driven by the same closed loop (:mod:`tests.benchmarks.serving.load`) in turn, several times over, so that what
else the machine does meets both. Each row: server, samples in a request, connections, requests a second, milliseconds
(median, 99th percentile), and milliseconds of processor time that the server spent on a request. ``pace`` says whether
connections send as fast as they are answered (``closed``), or together half of the server's best rate (``half``). The
last row is 10,000 samples in one request: there the server's own processor time counts, not the client's reading.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.benchmarks.api import prepare
from tests.benchmarks.command import above_nothing, output_file
from tests.benchmarks.serving import servers, stopping
from tests.benchmarks.serving.load import Load, Target, closed_loop
from tests.benchmarks.serving.processor import Clock

WANTED_RATIO, WANTED_P99, WANTED_BATCH = 5.0, 25.0, 150.0
CONNECTIONS = (1, 4, 16)
TURNS = 5
BATCH = 10_000


def row(
    target: Target, n_samples: int, connections: int, pace: str, loads: Sequence[Load], cpu: float
) -> dict[str, Any]:
    """One row: medians over the turns, and the processor time over all of them."""
    return {
        "server": target.name, "samples_per_request": n_samples, "connections": connections, "pace": pace,
        "requests_per_second": statistics.median(load.per_second for load in loads),
        "p50_ms": statistics.median(load.milliseconds(0.5) for load in loads),
        "p99_ms": statistics.median(load.milliseconds(0.99) for load in loads),
        "server_cpu_ms": 1e3 * cpu / sum(len(load.seconds) for load in loads),
    }


def in_turn(
    targets: Sequence[tuple[Target, Clock]], connections: int, seconds: float, rates: dict[str, float] | None = None
) -> list[dict[str, Any]]:
    """Drive the servers in turn; a row each."""
    loads: dict[str, list[Load]] = {target.name: [] for target, _ in targets}
    spent = dict.fromkeys(loads, 0.0)
    for _ in range(TURNS):
        for target, clock in targets:
            stopping.end_if_told()
            before = clock.seconds()
            rate = None if rates is None else rates[target.name]
            loads[target.name].append(asyncio.run(closed_loop(target, connections, seconds, rate)))
            spent[target.name] += clock.seconds() - before
    pace = "closed" if rates is None else "half"
    return [row(target, 1, connections, pace, loads[target.name], spent[target.name]) for target, _ in targets]


def batch(target: Target, clock: Clock, token: str, seconds: float) -> dict[str, Any]:
    """The row of ten thousand samples in one request."""
    request = servers.ours(target.port, token, BATCH)
    asyncio.run(closed_loop(target, 1, 0.5, request=request))
    before = clock.seconds()
    load = asyncio.run(closed_loop(target, 1, seconds, request=request))
    return row(target, BATCH, 1, "closed", [load], clock.seconds() - before)


def measure(home: Path, seconds: float) -> list[dict[str, Any]]:
    """All rows."""
    settings, token = prepare(home)
    model = next(path.parent for path in home.rglob("MLmodel"))
    with servers.ballast(settings.home, token) as (ours, our_process), servers.mlflow(model) as (theirs, their_process):
        targets = [(ours, Clock(our_process)), (theirs, Clock(their_process))]
        for target, _ in targets:
            asyncio.run(closed_loop(target, 4, 1.0))
        rows = [found for connections in CONNECTIONS for found in in_turn(targets, connections, seconds)]
        best = {name: max(each["requests_per_second"] for each in rows if each["server"] == name) for name in
                (servers.OURS, servers.MLFLOW)}
        rows += in_turn(targets, 4, seconds, {name: rate / 2.0 for name, rate in best.items()})
        return [*rows, batch(ours, targets[0][1], token, max(2.0, 2.0 * seconds))]


def summary(rows: Sequence[dict[str, Any]]) -> tuple[str, bool]:
    """What was wanted and what was found, on three lines; whether all of it holds."""
    def best(name: str, figure: str, pace: str = "closed") -> float:
        found = [each[figure] for each in rows if each["server"] == name and each["pace"] == pace
                 and each["samples_per_request"] == 1]
        return float(max(found) if figure == "requests_per_second" else min(found))

    ratio = best(servers.OURS, "requests_per_second") / best(servers.MLFLOW, "requests_per_second")
    work = best(servers.MLFLOW, "server_cpu_ms") / best(servers.OURS, "server_cpu_ms")
    p99 = best(servers.OURS, "p99_ms", "half")
    whole = next(each["server_cpu_ms"] for each in rows if each["samples_per_request"] == BATCH)
    text = (
        f"throughput {ratio:.1f} times that of {servers.MLFLOW} (wanted {WANTED_RATIO:g}), processor time of a request "
        f"1/{work:.1f} of its\np99 at half of the top load {p99:.1f} ms (wanted under {WANTED_P99:g})\n"
        f"{BATCH:,} samples in one request {whole:.0f} ms of processor time (wanted under {WANTED_BATCH:g})"
    )
    return text, ratio >= WANTED_RATIO and p99 < WANTED_P99 and whole < WANTED_BATCH


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; 1 when something that is wanted is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows as JSON")
    parser.add_argument("--seconds", type=above_nothing, default=2.0, help="of each turn (default: 2)")
    chosen = parser.parse_args(arguments)
    stopping.listen()  # the servers end with us
    with tempfile.TemporaryDirectory() as scratch:
        rows = measure(Path(scratch), chosen.seconds)
    packages = " ".join(f"{name} {version(name)}" for name in ("uvicorn", "httptools", "fastapi", "mlflow", "numpy"))
    print(f"Python {platform.python_version()}, {packages}; one worker each")
    for each in rows:
        shown = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in each.items()}
        print("  ".join(f"{name} {value}" for name, value in shown.items()))
    text, holds = summary(rows)
    print(text)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
