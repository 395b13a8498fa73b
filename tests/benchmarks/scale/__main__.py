"""A plan over many plants: ``python -m tests.benchmarks.scale [--sites N ...] [--cohort SIZE] [--json F] [--page F]``.

Real: the server half of ``cohort-bundle`` over cohort sums (processor time, memory), local solves on small drawn
tables, the masks of one cohort. Modelled: the network and how unlike the plants' machines are. Not here: TLS,
signatures and admission of each answer, and the commit, which ``overhead`` and ``server_step`` measure.
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
from dataclasses import replace  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from models.cohorts.dealing import cohort_problem  # noqa: E402
from models.cohorts.fixed_point import word_count  # noqa: E402
from models.methods.catalogue import check_parameters, get_method  # noqa: E402
from models.problem import Status  # noqa: E402
from tests.benchmarks.command import at_least, output_file  # noqa: E402
from tests.benchmarks.scale.fleet import Fleet  # noqa: E402
from tests.benchmarks.scale.masks import mask_cost  # noqa: E402
from tests.benchmarks.scale.network import EXCHANGES, Network  # noqa: E402
from tests.benchmarks.scale.page import COLUMNS, page_file, page_text  # noqa: E402

MOST_ROUNDS = 40


def measure(plants: int, cohort: int, kinds: int, network: Network) -> dict[str, Any]:
    """A run to a certified gap of 1e-3."""
    method, fleet, random = get_method("cohort-bundle"), Fleet.drawn(plants, cohort, kinds), np.random.default_rng(1)
    problem = replace(fleet.problem, parameters=check_parameters(method, {}))
    summed = cohort_problem(problem, fleet.cohorts)
    shapes = method.server.answer_shapes(summed.dimension, 0, summed.parameters)
    largest = max(len(members) for members in fleet.cohorts.values())
    masks = mask_cost(largest, word_count(shapes))
    state, rounds, peak = method.server.init(summed), 0, 0
    spent = dict.fromkeys(("network", "plants", "server step", "server masks"), 0.0)
    traffic = 0.0
    status = Status.CONTINUE
    while status is Status.CONTINUE and rounds < MOST_ROUNDS:
        rounds += 1
        messages = method.server.messages(state, summed)
        sent = max(sum(array.nbytes for array in each.values()) for each in messages.values())
        answers = fleet.answers(method, summed, messages, shapes)
        # Memory of a step is asked of a step that is not timed: to trace it costs time.
        tracemalloc.start()
        method.server.step(state, summed, answers)
        peak = max(peak, tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        began = time.process_time()
        state = method.server.step(state, summed, answers)
        spent["server step"] += time.process_time() - began
        spent["server masks"] += masks.server_seconds * len(fleet.cohorts)
        bytes_a_plant = sent + masks.bytes_down + masks.bytes_up
        traffic += bytes_a_plant
        spent["network"] += sum(network.exchange(plants, bytes_a_plant / EXCHANGES, random) for _ in range(EXCHANGES))
        spent["plants"] += network.solve(plants, np.array(fleet.solves) + masks.plant_seconds, random)
        status = method.server.status(state, summed)
        print(f"  round {rounds}: gap {method.server.certificate(state).gap:.2e}", flush=True)
    held = sum(array.nbytes for array in method.server.pack(state).values())
    return {
        "plants": plants, "cohort": largest, "cohorts": len(fleet.cohorts), "unlike": len(fleet.sites),
        "rounds": rounds, "gap": method.server.certificate(state).gap, "seconds": sum(spent.values()),
        **{f"{name} s": seconds for name, seconds in spent.items()}, "kB a plant": traffic / 1e3,
        "step MB": peak / 1e6, "state MB": held / 1e6, "wall": max(spent, key=lambda name: spent[name]),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, write rows and page where asked; 1 where a run did not come to 1e-3."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--sites", type=at_least(3), nargs="+", default=[1000], metavar="N", help="plants (1000)")
    parser.add_argument("--cohort", type=at_least(3), default=20, metavar="SIZE", help="plants in a cohort (20)")
    parser.add_argument("--kinds", type=at_least(), default=20, metavar="K", help="unlike plants in it, at most (20)")
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    parser.add_argument("--page", type=page_file, metavar="FILE", help="write a page there: .md or .html")
    options = parser.parse_args(arguments)
    network, rows = Network(), []
    for plants in options.sites:
        print(f"{plants} plants", flush=True)
        rows.append(measure(plants, options.cohort, options.kinds, network))
    print("".join(f"{name:>15}" for name in COLUMNS))
    for row in rows:
        print("".join(f"{value:>15.4g}" if isinstance(value, float) else f"{value:>15}"
                      for value in (row[name] for name in COLUMNS)))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if options.page is not None:
        options.page.write_text(page_text(rows, network, html=options.page.suffix == ".html"), encoding="utf-8")
    return int(any(row["gap"] > 1e-3 for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
