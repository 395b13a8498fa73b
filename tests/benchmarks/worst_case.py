"""Time of the exact worst-case risk on a box: ``python -m tests.benchmarks.worst_case [--json FILE]``.

Against the linear program of the same supremum in HiGHS (transport norm l-inf), single thread, medians over several
planes; HiGHS gets the program ready built and only its own time counts, ours includes all checks of its arguments. Then
alone at 100,000 rows and 50 features, with the peak of what it allocates on top of the data.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import json  # noqa: E402
import time  # noqa: E402
import tracemalloc  # noqa: E402
from collections.abc import Sequence  # noqa: E402

import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402
from scipy.optimize import linprog  # noqa: E402

from models.basics import FloatArray, TransportNorm  # noqa: E402
from models.worst_case.risk import worst_case_risk  # noqa: E402
from tests.benchmarks.command import output_file  # noqa: E402

TARGET = 200.0
PLANES = 11
REPEATS = 20
RADIUS, LABEL_FLIP_COST = 0.05, 1.0


def rows_and_planes(n: int, p: int, seed: int = 0) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    """Features in [0, 1], noisy linear labels, and planes around the one that made them."""
    rng = np.random.default_rng(seed)
    features, truth = rng.uniform(0.0, 1.0, (n, p)), rng.normal(size=p)
    labels = np.where((features - 0.5) @ truth + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    return features, labels, [truth + 0.5 * rng.normal(size=p) for _ in range(PLANES)]


def linear_program(weights: FloatArray, features: FloatArray, labels: FloatArray) -> dict[str, object]:
    """The supremum over distributions on the box [0, 1] for transport norm l-inf.

    Per sample, in order: three masses (kept, flipped, left alone), two lengths, the move under the label (P) and that
    of the flipped part (P), each times its mass. Mass m at x that moves by q stays inside if ``0 <= m x + q <= m``.
    """
    n, p = features.shape
    width = 5 + 2 * p
    margins = labels * (features @ weights)
    gain = np.zeros((n, width))
    gain[:, 0], gain[:, 1] = 1 - margins, 1 + margins
    gain[:, 5 : 5 + p] = -labels[:, None] * weights
    gain[:, 5 + p :] = labels[:, None] * weights
    every = sparse.eye_array(n)
    blocks = []
    for side in (0, 1):
        move = np.hstack([np.zeros((p, 5 + side * p)), np.eye(p), np.zeros((p, (1 - side) * p))])
        length, mass = np.zeros((p, width)), np.zeros((p, width))
        length[:, 3 + side] = mass[:, side] = 1.0
        moves, lengths, masses = (sparse.kron(every, part) for part in (move, length, mass))
        place = sparse.diags_array(features.ravel()) @ masses + moves
        blocks += [-place, place - masses, moves - lengths, -moves - lengths]
    budget = np.zeros((n, width))
    budget[:, 1] = LABEL_FLIP_COST
    budget[:, 3:5] = 1.0
    blocks.append(sparse.csr_array(budget.reshape(1, -1)))
    inequalities = sparse.vstack(blocks).tocsr()
    limits = np.zeros(inequalities.shape[0])
    limits[-1] = n * RADIUS
    whole = np.zeros((1, width))
    whole[0, :3] = 1.0
    free = [(0.0, None)] * 5 + [(None, None)] * (2 * p)
    return {
        "c": -gain.ravel() / n, "A_ub": inequalities, "b_ub": limits,
        "A_eq": sparse.kron(every, whole).tocsr(), "b_eq": np.ones(n), "bounds": free * n,
    }


def against_highs(n: int, p: int) -> list[dict[str, object]]:
    """Median times of both on the same planes, and how far the values are apart."""
    features, labels, planes = rows_and_planes(n, p)
    ours, theirs, apart = [], [], []
    for weights in planes:
        value = 0.0
        for _ in range(REPEATS):
            start = time.perf_counter()
            value = _risk(weights, features, labels, "linf")
            ours.append(time.perf_counter() - start)
        program = linear_program(weights, features, labels)
        start = time.perf_counter()
        found = linprog(method="highs", **program)
        theirs.append(time.perf_counter() - start)
        apart.append(abs(-found.fun - value) / value)
    row = {"n": n, "p": p, "norm": "linf", "worst_relative_difference": max(apart)}
    seconds = float(np.median(ours)), float(np.median(theirs))
    return [
        {**row, "solver": "ballast", "seconds": seconds[0], "ratio_to_highs": seconds[1] / seconds[0]},
        {**row, "solver": "highs", "seconds": seconds[1], "ratio_to_highs": 1.0},
    ]


def alone(n: int, p: int, norm: TransportNorm) -> dict[str, object]:
    """Time, then memory (which tracing would slow) of one evaluation on a large site."""
    features, labels, planes = rows_and_planes(n, p)
    start = time.perf_counter()
    value = _risk(planes[0], features, labels, norm)
    seconds = time.perf_counter() - start
    tracemalloc.start()
    _risk(planes[0], features, labels, norm)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "n": n, "p": p, "norm": norm, "solver": "ballast", "seconds": seconds, "value": value,
        "memory_mb": peak / 2**20, "data_mb": features.nbytes / 2**20,
    }


def _risk(weights: FloatArray, features: FloatArray, labels: FloatArray, norm: TransportNorm) -> float:
    return worst_case_risk(
        weights, features, labels, radius=RADIUS, label_flip_cost=LABEL_FLIP_COST, transport_norm=norm, support=(0, 1)
    ).value


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; write it as JSON rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    options = parser.parse_args(arguments)
    rows = against_highs(100, 14)
    ours, theirs = rows
    ratio = float(str(ours["ratio_to_highs"]))
    print(
        f"N=100 P=14 linf: exact {float(str(ours['seconds'])) * 1e3:.3f} ms, "
        f"HiGHS {float(str(theirs['seconds'])) * 1e3:.1f} ms, {ratio:.0f}x, "
        f"values differ by {ours['worst_relative_difference']:.0e}   target {TARGET:.0f}x "
        f"{'met' if ratio >= TARGET else 'MISSED'}",
        flush=True,
    )
    for norm in ("linf", "l2", "l1"):
        row = alone(100_000, 50, norm)
        rows.append(row)
        print(
            f"N=100000 P=50 {norm:>4}: {row['seconds']:.2f} s, {row['memory_mb']:.0f} MB on top of "
            f"{row['data_mb']:.0f} MB of data",
            flush=True,
        )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
