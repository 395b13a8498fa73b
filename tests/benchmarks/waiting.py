"""One slow plant: ``python -m tests.benchmarks.waiting [--json FILE] [--seeds 5]``.

Seconds of a simulated clock to a certified gap of 1e-4, where every plant solves a question in a millisecond and one
of them takes 100 times as long. An exchange costs everybody ``frame`` seconds besides: the network, both frames, the
store, and the server's step. Nothing else is modelled, so the same seed gives the same seconds.

Compared are the synchronous rounds without the slowness (1.0 by definition), with it (``paced``), and the asynchronous
bundle as a plan's ``waiting`` drives it (``late``): a round ends with the fast plants. ``slow_answers``: how many of
the slow plant it took. ``least``: no method that needs one answer of the slow plant comes below this factor.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import json  # noqa: E402
from collections.abc import Mapping, Sequence  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from statistics import median  # noqa: E402

import numpy as np  # noqa: E402

from models.basics import Arrays  # noqa: E402
from models.methods.bundle.asynchronous import AsynchronousServer  # noqa: E402
from models.methods.catalogue import get_method  # noqa: E402
from models.problem import Certificate, RobustSpec, SiteProblem, Status  # noqa: E402
from models.simulation.federation import server_problem, train  # noqa: E402
from tests.benchmarks.command import at_least, in_words, output_file  # noqa: E402
from tests.benchmarks.data import load_binary  # noqa: E402

GAP, SLOWNESS, SOLVE, MOST_ROUNDS, TARGET = 1e-4, 100.0, 0.001, 600, 1.2
FRAMES = (0.0, 0.01, 0.03, 0.06, 0.1, 0.3, 0.5)
"""Seconds of an exchange besides solving: from none at all to a slow network with a busy server."""
SLOW = "plant-00"
TABLES = (("breast_cancer_wisconsin_diagnostic", "M", 4), ("breast_cancer_wisconsin_diagnostic", "M", 20))
METHOD = "level-bundle"


@dataclass(frozen=True)
class Late:
    """What came of an asynchronous run: seconds of the clock, rounds, answers of the slow plant, bounds."""

    seconds: float
    rounds: int
    slow_answers: int
    certificate: Certificate


def plants_of(table: str, positive: str, count: int, seed: int) -> dict[str, SiteProblem]:
    """Unlike plants: rows in the order of the first feature but for noise, cut into equal parts."""
    features, labels = load_binary(table, (positive,))
    low, high = features.min(axis=0), features.max(axis=0)
    features = 2.0 * (features - low) / (high - low) - 1.0
    noise = np.random.default_rng(seed).normal(0.0, 0.3, labels.size)
    order = np.argsort(features[:, 0] + noise, kind="stable")
    return {
        f"plant-{g:02d}": SiteProblem(features[rows], labels[rows], RobustSpec(1.0 / (10 * rows.size), 1.0, "l2"))
        for g, rows in enumerate(np.array_split(order, count))
    }


def run_late(
    plants: Mapping[str, SiteProblem], solve: Mapping[str, float], frame: float, gap: float = GAP,
    most_rounds: int = MOST_ROUNDS,
) -> Late:
    """The asynchronous bundle on a simulated clock; a round ends when whoever is as quick as the quickest is done.

    ``solve``: seconds of each plant. Where nobody idle is to be asked a round ends with the next answer.
    """
    half = get_method(METHOD).site
    problem = server_problem(plants, None, get_method(METHOD), {}, gap)
    server = AsynchronousServer(prox_cuts=True)
    state, now, rounds, slow_answers = server.init(problem), 0.0, 0, 0
    working: dict[str, tuple[float, Arrays]] = {}
    quickest = frame + min(solve.values())
    slowest = max(solve, key=lambda site: solve[site])
    while server.status(state, problem) is Status.CONTINUE and rounds < most_rounds:
        messages = server.messages(state, problem)
        for site in server.asks_next(state, problem):
            working[site] = (now + frame + solve[site], messages[site])
        in_time = [end for end, _ in working.values() if end <= now + quickest * (1 + 1e-9)]
        now = max(in_time, default=min(end for end, _ in working.values()))
        come = [site for site, (end, _) in working.items() if end <= now * (1 + 1e-9)]
        answers = {site: half.answer(plants[site], working.pop(site)[1], problem.parameters) for site in come}
        slow_answers += slowest in answers
        state = server.step_late(state, problem, answers, working, ())
        rounds += 1
    return Late(now, rounds, slow_answers, server.certificate(state))


def compared(table: str, positive: str, count: int, seed: int, frames: Sequence[float]) -> list[dict[str, object]]:
    """A row for each frame: factors on the time of the synchronous rounds where nobody is slow."""
    plants = plants_of(table, positive, count, seed)
    paced = train(plants, method=METHOD, gap=GAP)
    rows: list[dict[str, object]] = []
    for frame in frames:
        solve = dict.fromkeys(plants, SOLVE) | {SLOW: SLOWNESS * SOLVE}
        even = paced.n_rounds * (frame + SOLVE)
        late = run_late(plants, solve, frame)
        rows.append({
            "table": table, "plants": count, "seed": seed, "frame": frame, "seconds": even, "rounds": paced.n_rounds,
            "paced": (frame + SLOWNESS * SOLVE) / (frame + SOLVE), "late": late.seconds / even,
            "least": (frame + SLOWNESS * SOLVE) / even, "late_rounds": late.rounds,
            "slow_answers": late.slow_answers, "gap": late.certificate.gap,
            "fresh_weight": late.certificate.fresh_weight,
        })
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each number of plants and frame; write the rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    parser.add_argument("--seeds", type=at_least(), default=5, help="seeds (default 5)")
    options = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    print("plants | frame s | rounds | paced | waiting | least | rounds | slow answers | within 1.2")
    for table, positive, count in TABLES:
        found = [row for seed in range(options.seeds) for row in compared(table, positive, count, seed, FRAMES)]
        rows += found
        for frame in FRAMES:
            here = [row for row in found if row["frame"] == frame]
            names = ("rounds", "paced", "late", "least", "late_rounds", "slow_answers")
            middle = {name: median(float(str(row[name])) for row in here) for name in names}
            within = sum(float(str(row["late"])) <= TARGET for row in here)
            print(
                f"{count} | {frame:g} | {middle['rounds']:g} | {middle['paced']:.2f} | {middle['late']:.2f} | "
                f"{middle['least']:.2f} | {middle['late_rounds']:g} | {middle['slow_answers']:g} | "
                f"{within} of {len(here)}"
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(in_words(main))
