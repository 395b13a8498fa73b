"""Time of a warm client step: ``python -m tests.benchmarks.prox [--json FILE] [--norm linf] [--penalty 0.1]``.

Consensus ADMM over four skewed sites of N rows each gives the centres that one site meets from round to round; every
solver then makes that site's steps, one after the other on one thread. Times are medians over the rounds after the
first. ``ratio_to_cvxpy`` is CVXPY's time over the solver's. Default: the paper's
setting (transport norm linf, radius 1 / (10 N), label flip cost 1), with an intercept.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import json  # noqa: E402
import time  # noqa: E402
import tracemalloc  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from dataclasses import dataclass  # noqa: E402

import numpy as np  # noqa: E402

from models.basics import FloatArray, TransportNorm  # noqa: E402
from models.problem import RobustSpec, SiteProblem  # noqa: E402
from models.prox.hinge import robust_prox  # noqa: E402
from models.prox.solution import ProxSolution  # noqa: E402
from tests.benchmarks.command import above_nothing, at_least, output_file  # noqa: E402
from tests.benchmarks.prox_rivals import Step, clarabel_step, cvxpy_step, piqp_step  # noqa: E402

SIZES = ((100, 14), (1_000, 14), (1_000, 60), (10_000, 14), (100_000, 14))
TARGETS = {(1_000, 14): 20.0, (1_000, 60): 30.0, (10_000, 14): 60.0}
ROUNDS = 24
REPEATS = 3
"""How often our steps are timed, a step being shorter than what disturbs it."""
LARGE = 50_000
LARGE_ROUNDS = 2
"""Rounds of the general solvers from ``LARGE`` rows on, where one takes them from half a minute to minutes."""


@dataclass(frozen=True)
class Round:
    """What one site meets in a round: the centre, and the answer it gave in the round before."""

    centre: FloatArray
    before: FloatArray


def skewed_sites(n: int, p: int, seed: int = 0) -> list[tuple[FloatArray, FloatArray]]:
    """Four sites of n rows: correlated features in (0, 1), noisy linear labels, cut along the first feature."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(p) + 0.3 * rng.normal(size=(p, p)) / np.sqrt(p)
    features = 1.0 / (1.0 + np.exp(-rng.normal(size=(4 * n, p)) @ mixing))
    score = (features - 0.5) @ rng.normal(size=p)
    labels = np.where(score / score.std() + 0.3 * rng.normal(size=4 * n) > 0.0, 1.0, -1.0)
    order = np.argsort(features[:, 0] + 0.3 * rng.normal(size=4 * n))
    return [(features[part].copy(), labels[part]) for part in np.array_split(order, 4)]


def admm_rounds(problems: list[SiteProblem], penalty: float, rounds: int) -> list[Round]:
    """Centres and former answers of the first site in consensus ADMM (FDR Algorithm 2)."""
    dimension = problems[0].features.shape[1] + 1
    local = np.zeros((len(problems), dimension))
    duals, shared = np.zeros_like(local), np.zeros(dimension)
    met: list[Round] = []
    for number in range(rounds + 1):
        if number:
            met.append(Round(shared - duals[0], local[0].copy()))
        for g, problem in enumerate(problems):
            start = local[g] if number else None
            local[g] = robust_prox(problem, shared - duals[g], penalty, warm_start=start).point
        shared = (local + duals).mean(axis=0)
        duals += local - shared
    return met


def run_ballast(problem: SiteProblem, met: list[Round], penalty: float) -> tuple[list[float], list[ProxSolution]]:
    """Times and answers of our steps."""
    seconds, answers = [], []
    for _ in range(REPEATS):
        answers.clear()
        for now in met:
            start = time.perf_counter()
            answers.append(robust_prox(problem, now.centre, penalty, warm_start=now.before))
            seconds.append(time.perf_counter() - start)
    return seconds, answers


def run_rival(step: Step, met: list[Round]) -> tuple[list[float], list[float]]:
    """Times and objectives of another solver's steps; one untimed step before them compiles what is to be compiled."""
    step(met[0].centre)
    seconds, objectives = [], []
    for now in met:
        start = time.perf_counter()
        objectives.append(step(now.centre))
        seconds.append(time.perf_counter() - start)
    return seconds, objectives


def peak_memory(problem: SiteProblem, met: Round, penalty: float) -> float:
    """Peak of what one step allocates, over the bytes of the data."""
    tracemalloc.start()
    robust_prox(problem, met.centre, penalty, warm_start=met.before)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (problem.features.nbytes + problem.labels.nbytes)


def measure(n: int, p: int, norm: TransportNorm, penalty: float) -> list[dict[str, object]]:
    """Rows of one size, all solvers."""
    spec = RobustSpec(radius=1.0 / (10 * n), label_flip_cost=1.0, transport_norm=norm)
    problems = [SiteProblem(features, labels, spec) for features, labels in skewed_sites(n, p)]
    met = admm_rounds(problems, penalty, ROUNDS)
    problem = problems[0]
    taken, answers = run_ballast(problem, met, penalty)
    base: dict[str, object] = {"n": n, "p": p, "norm": norm, "penalty": penalty}
    rows = [
        base
        | {
            "solver": "ballast",
            "seconds": float(np.median(taken)),
            "rounds": len(met),
            "slowest_seconds": max(taken),
            "passes": float(np.median([answer.passes for answer in answers])),
            "systems": float(np.median([answer.iterations for answer in answers])),
            "memory_over_data": peak_memory(problem, met[0], penalty),
            "worst_relative_gap": max(answer.gap / answer.value for answer in answers),
        }
    ]
    for name, build in (("cvxpy", cvxpy_step), ("clarabel", clarabel_step), ("piqp", piqp_step)):
        step = build(problem, penalty)
        if step is None:
            rows.append(base | {"solver": name, "seconds": None})
            continue
        last = met if n < LARGE else met[-LARGE_ROUNDS:]
        taken, found = run_rival(step, last)
        apart = [
            (objective + 0.5 * penalty * float(now.centre @ now.centre) - answer.value) / answer.value
            for objective, now, answer in zip(found, last, answers[-len(last) :], strict=True)
        ]
        rows.append(
            base
            | {
                "solver": name,
                "seconds": float(np.median(taken)),
                "rounds": len(last),
                "gave_up": int(np.isnan(found).sum()),
                "worst_relative_difference": float(np.nanmax(np.abs(apart))),
            }
        )
    yardstick = next(row["seconds"] for row in rows if row["solver"] == "cvxpy")
    for row in rows:
        row["ratio_to_cvxpy"] = None if row["seconds"] is None else float(str(yardstick)) / float(str(row["seconds"]))
    return rows


def print_row(row: dict[str, object]) -> None:
    """One line of the table."""
    if row["seconds"] is None:
        print(f"{row['n']:>7} {row['p']:>3} {row['solver']:>9}        does not state this norm")
        return
    line = f"{row['n']:>7} {row['p']:>3} {row['solver']:>9} {float(str(row['seconds'])) * 1e3:>11.3f} ms"
    line += f" {float(str(row['ratio_to_cvxpy'])):>8.1f}x   rounds {row['rounds']}"
    if row["solver"] == "ballast":
        line += (
            f"   passes {row['passes']:.0f}   systems {row['systems']:.0f}   slowest {row['slowest_seconds']:.4f} s"
            f"   memory {row['memory_over_data']:.2f} x data   gap {row['worst_relative_gap']:.0e}"
        )
        target = TARGETS.get((int(str(row["n"])), int(str(row["p"]))))
        if target is not None:
            line += f"   target {target:.0f}x {'met' if float(str(row['ratio_to_cvxpy'])) >= target else 'MISSED'}"
    else:
        line += f"   gave up {row['gave_up']}   objective differs by {row['worst_relative_difference']:.0e}"
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; write it as JSON rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    parser.add_argument("--norm", choices=("l1", "l2", "linf"), default="linf", help="transport norm (default linf)")
    parser.add_argument("--penalty", type=above_nothing, default=0.1, help="penalty of ADMM (default 0.1)")
    parser.add_argument("--rows-up-to", type=at_least(), default=SIZES[-1][0], help="leave out larger sites")
    options = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    for n, p in SIZES:
        if n <= options.rows_up_to:
            for row in measure(n, p, options.norm, options.penalty):
                print_row(row)
                rows.append(row)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
