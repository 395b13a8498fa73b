"""AD-LPMM and the level bundle on one problem, and the client step: ``python -m tests.benchmarks.drfl [--json FILE]``.

Rounds and seconds to a certified gap of 1e-3, for AD-LPMM with the paper's proximal constant, with the tight one, by
default, and for the level bundle. S simulated sites hold 40 rows of five features and a target each, from planes that
differ by site; Huber loss (epsilon 0.1), radius 0.01, transport norm l2, ball of radius 0.2 (l2) around equal site
weights. The two constants are compared on the iterates alone (no probes) with step sizes that stand: the best of one
grid for each constant by itself, ``STEPS`` for c and ``WEIGHT_STEPS`` / S for c_weights. By default the step sizes
follow from the data and the risk is asked at the minimiser of the cuts in every second round.

The client step is that of the hinge loss on a box, 1,000 rows of 14 features, in the rounds that AD-LPMM over four
skewed sites meets; CVXPY with Clarabel states it once and then moves its parameters. Both are timed on the same rounds.
1 where a target is missed.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import itertools  # noqa: E402
import json  # noqa: E402
import time  # noqa: E402
from collections.abc import Sequence  # noqa: E402

import cvxpy as cp  # noqa: E402
import numpy as np  # noqa: E402

from models.basics import Arrays  # noqa: E402
from models.geometry.supports import BoxSupport  # noqa: E402
from models.losses.regression import Huber  # noqa: E402
from models.methods.catalogue import get_method  # noqa: E402
from models.problem import RobustSpec, SiteProblem  # noqa: E402
from models.prox.bundle import RiskPenalty, local_step  # noqa: E402
from models.simulation.federation import server_problem, train  # noqa: E402
from models.site_ambiguity.ball import MixtureBall  # noqa: E402
from tests.benchmarks.command import at_least, output_file  # noqa: E402
from tests.benchmarks.prox import skewed_sites  # noqa: E402
from tests.oracles.worst_case import risk_model  # noqa: E402

GAP, MAX_ROUNDS = 1e-3, 100
SITES = (3, 10, 50)
STEPS, WEIGHT_STEPS = (3.0, 10.0), (0.1, 0.3)
CLOSE = 1e-6
"""How far apart, relatively, the objectives of the client step may be."""
BALL = MixtureBall("l2", 0.2)
TARGET = 20.0
"""How many times as fast as CVXPY a client step must be."""
CLIENT_ROUNDS, CVXPY_ROUNDS = 16, 3


def simulated_sites(count: int, rows: int = 40, p: int = 5, seed: int = 0) -> dict[str, SiteProblem]:
    """Sites whose features, planes and noise differ."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=p)
    spec = RobustSpec(0.01, 10.0, "l2", loss=Huber(0.1))
    sites = {}
    for s in range(count):
        plane = common + 0.3 * rng.normal(size=p)
        features = rng.uniform(-1, 1, (rows, p)) + 0.2 * rng.normal(size=p)
        noise = 0.1 * (0.5 + rng.uniform()) * rng.normal(size=rows)
        sites[f"site-{s:02d}"] = SiteProblem(features, features @ plane + 0.1 * rng.normal() + noise, spec)
    return sites


def rounds_of(count: int) -> list[dict[str, object]]:
    """One row a method."""
    sites, rows = simulated_sites(count), list[dict[str, object]]()
    for method in ("level-bundle", "drfl-admm"):
        start = time.perf_counter()
        run = train(sites, method=method, gap=GAP, max_rounds=MAX_ROUNDS, mixture=BALL)
        taken = time.perf_counter() - start
        rows.append({"sites": count, "method": method, "rounds": run.n_rounds, "seconds": taken})
    for tight in (0.0, 1.0):
        best: dict[str, object] = {"rounds": None, "seconds": None}
        limit = MAX_ROUNDS
        for c, over in itertools.product(STEPS, WEIGHT_STEPS):
            numbers = {"c": c, "c_weights": over / count, "tight": tight, "probe": 0.0}
            start = time.perf_counter()
            run = train(sites, method="drfl-admm", parameters=numbers, gap=GAP, max_rounds=limit, mixture=BALL)
            if run.certificate.gap <= GAP:
                limit = run.n_rounds
                best = {**numbers, "rounds": run.n_rounds, "seconds": time.perf_counter() - start}
        rows.append({"sites": count, "method": f"drfl-admm, {'tight' if tight else 'paper'}", **best})
    return rows


def client_messages(problems: dict[str, SiteProblem]) -> tuple[list[Arrays], float]:
    """What the first site is sent in the last rounds, and the stiffness of its step, which is the same in all."""
    method = get_method("drfl-admm")
    problem = server_problem(problems, None, method, {}, GAP, BALL)
    state, met = method.server.init(problem), list[Arrays]()
    for _ in range(CLIENT_ROUNDS):
        messages = method.server.messages(state, problem)
        met.append(messages["site-0"])
        answers = {name: method.site.answer(problems[name], messages[name], problem.parameters) for name in problems}
        state = method.server.step(state, problem, answers)
    stiffness = float(met[-1]["stiffness"])
    return [message for message in met if float(message["stiffness"]) == stiffness], stiffness


def cvxpy_step(problem: SiteProblem, stiffness: float) -> tuple[cp.Problem, cp.Parameter, cp.Parameter]:
    """The client step stated once, with parameters for the centre and the target."""
    weights = cp.Variable(problem.features.shape[1] + 1)
    centre, target = cp.Parameter(weights.shape), cp.Parameter()
    risk, constraints = risk_model(weights, problem)
    over = cp.Variable(nonneg=True)
    objective = 0.5 * stiffness * cp.square(over) + 0.5 * cp.sum_squares(weights - centre)
    return cp.Problem(cp.Minimize(objective), [*constraints, over >= risk - target]), centre, target


def client_step(n: int = 1_000, p: int = 14) -> dict[str, object]:
    """Median times of ours and of CVXPY's step, and how far their objectives are apart."""
    box = BoxSupport(np.zeros(p), np.ones(p))
    spec = RobustSpec(1.0 / (10 * n), 1.0, "linf", box)
    data = enumerate(skewed_sites(n, p))
    problems = {f"site-{s}": SiteProblem(features, labels, spec) for s, (features, labels) in data}
    met, stiffness = client_messages(problems)
    site, ours, values = problems["site-0"], list[float](), list[float]()
    for message in met:
        start = time.perf_counter()
        height = RiskPenalty(-stiffness * float(message["target"]), stiffness)
        values.append(local_step(site, message["centre"], height, start=message["point"]).value)
        ours.append(time.perf_counter() - start)
    program, centre, target = cvxpy_step(site, stiffness)
    theirs, apart = list[float](), list[float]()
    for number, message in enumerate([met[-CVXPY_ROUNDS - 1], *met[-CVXPY_ROUNDS:]]):
        centre.value, target.value = np.asarray(message["centre"]), float(message["target"])
        start = time.perf_counter()
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9)
        if number:  # the first one compiles
            theirs.append(time.perf_counter() - start)
            value = values[number - CVXPY_ROUNDS - 1]
            apart.append(abs(float(program.value) - value) / value)
    seconds, cvxpy_seconds = float(np.median(ours[-CVXPY_ROUNDS:])), float(np.median(theirs))
    return {
        "n": n, "p": p, "seconds": seconds, "cvxpy_seconds": cvxpy_seconds, "ratio": cvxpy_seconds / seconds,
        "relatively_apart": max(apart), "objective": float(np.median(values[-CVXPY_ROUNDS:])),
    }


def missed(rows: Sequence[dict[str, object]], client: dict[str, object]) -> list[str]:
    """Targets that were not met, in words."""
    found = {(row["sites"], row["method"]): row["rounds"] for row in rows}
    worse = []
    for count in sorted({int(str(row["sites"])) for row in rows}):
        tight, paper = found[count, "drfl-admm, tight"], found[count, "drfl-admm, paper"]
        if tight is None or (paper is not None and int(str(tight)) >= int(str(paper))):
            worse.append(f"S = {count}: the tight constant needs no fewer rounds than the paper's")
    if float(str(client["ratio"])) < TARGET:
        worse.append(f"the client step is under {TARGET:g} times as fast as CVXPY")
    if float(str(client["relatively_apart"])) > CLOSE:
        worse.append(f"the client step's objective is over {CLOSE:g} away from CVXPY's")
    return worse


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    parser.add_argument("--sites", type=at_least(), nargs="+", default=list(SITES), help="numbers of sites")
    options = parser.parse_args(arguments)
    client = client_step()
    print(
        f"client step, N={client['n']}, P={client['p']}, hinge on a box: {float(str(client['seconds'])) * 1e3:.1f} ms, "
        f"CVXPY {float(str(client['cvxpy_seconds'])) * 1e3:.0f} ms, ratio {float(str(client['ratio'])):.0f}, "
        f"objectives apart by {float(str(client['relatively_apart'])):.0e} of {float(str(client['objective'])):.1e}",
        flush=True,
    )
    rows: list[dict[str, object]] = []
    for count in options.sites:
        for row in rounds_of(count):
            rows.append(row)
            print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    failures = missed(rows, client)
    if options.json is not None:
        options.json.write_text(json.dumps({"rounds": rows, "client_step": client}, indent=1) + "\n", encoding="utf-8")
    for line in failures:
        print(f"MISSED: {line}")
    return int(bool(failures))


if __name__ == "__main__":
    raise SystemExit(main())
