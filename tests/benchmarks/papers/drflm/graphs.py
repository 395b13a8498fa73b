"""Table 1 and Figures 2 and 3 of the DRFLM paper: worst-client error of graph networks, with noisy targets.

``python -m tests.benchmarks.papers.drflm.graphs [--quick] [--data NAME] [--network gcn|gat|mpnn]``

Two layers of graph convolution or attention, or two steps of message passing; mean squared error, five local steps a
round, batches of a fifth of the rows; the methods mix embeddings (:mod:`models.methods.local_sgd.objectives.graphs`).
Settings: three equal clients (Table 1); three with noise of .5, 1 and 2 deviations at half of them (Figure 2a); five
and eight clients (2b); rows as 7:2:1 with and without noise (2c). Step and, for DRFLM, Beta are those of the least
worst-client error on validation rows. Figure 3 is the worst client's training loss by round, without noise. Full: 100
rounds as in the paper, three splits. Quick: one split, 30 rounds.

Not in it: the drug affinities of ChEMBL.
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
import functools
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from models.basics import FloatArray
from models.methods.local_sgd.objectives.base import Rows
from models.methods.local_sgd.objectives.graphs.objective import NetworkKind
from models.simulation.local_training import LocalTraining, train_local
from tests.benchmarks.data import MissingDataError
from tests.benchmarks.papers.drflm.graph_clients import GraphData, GraphSplit, load_graphs, split
from tests.benchmarks.papers.fdr_svm.cells import Job, Row, run_cells
from tests.benchmarks.papers.fdr_svm.plots import line_plots

SETTINGS: dict[str, tuple[tuple[float, ...], float]] = {
    "three clients": ((1, 1, 1), 0.0),
    "noise 0.5": ((1, 1, 1), 0.5),
    "noise 1": ((1, 1, 1), 1.0),
    "noise 2": ((1, 1, 1), 2.0),
    "five clients": ((1,) * 5, 0.0),
    "eight clients": ((1,) * 8, 0.0),
    "7:2:1": ((7, 2, 1), 0.0),
    "7:2:1, noise 1": ((7, 2, 1), 1.0),
    "7:2:1, noise 2": ((7, 2, 1), 2.0),
}
PRINTED = {
    ("esol", "gcn"): {"FedAvg": (0.976, 1.232), "DRFA": (1.204, 1.357), "DRFLM": (1.086, 1.121)},
    ("esol", "gat"): {"FedAvg": (1.134, 1.343), "DRFA": (1.346, 1.466), "DRFLM": (1.243, 1.234)},
    ("esol", "mpnn"): {"FedAvg": (0.923, 1.312), "DRFA": (1.233, 1.386), "DRFLM": (0.989, 1.132)},
    ("freesolv", "gcn"): {"FedAvg": (3.011, 3.863), "DRFA": (3.465, 3.928), "DRFLM": (3.123, 3.532)},
    ("freesolv", "gat"): {"FedAvg": (2.641, 3.456), "DRFA": (2.897, 3.699), "DRFLM": (2.801, 3.207)},
    ("freesolv", "mpnn"): {"FedAvg": (2.974, 3.689), "DRFA": (3.211, 3.899), "DRFLM": (3.112, 3.579)},
}
"""Average and worst-case RMSE for three clients, by table and network."""
STEPS, BETAS = (0.03, 0.1), (0.2, 2.0)
_BATCH = {"batch": 0.2}
_STEPS_OF_DRFA = {**_BATCH, "local_steps": 5.0, "mixture_step": 0.01}
COLUMNS: dict[str, tuple[dict[str, float], ...]] = {
    "FedAvg": tuple({**_BATCH, "epochs": 1.0, "step_size": step} for step in STEPS),
    "DRFA": tuple({**_STEPS_OF_DRFA, "step_size": step} for step in STEPS),
    "DRFLM": tuple(
        {**_STEPS_OF_DRFA, "step_size": step, "mixup_alpha": beta, "mixup_beta": beta}
        for step in STEPS for beta in BETAS
    ),
}
"""Five local steps for all: FedAvg takes them as one epoch of five batches."""


@dataclass(frozen=True)
class Fitted:
    """Errors of the chosen candidate in the target's unit; its worst client's training loss by round, as JSON."""

    average: float
    worst: float
    chosen: str
    losses: str
    seconds: float


@functools.cache
def _data(name: str, network: NetworkKind) -> GraphData:
    return load_graphs(name, network)


def run_cell(name: str, network: NetworkKind, setting: str, column: str, seed: int, rounds: int) -> Fitted:
    """A column on one split of a setting."""
    began, data = time.perf_counter(), _data(name, network)
    shares, noise = SETTINGS[setting]
    parts = split(data, shares, noise, seed)
    fits = [(numbers, fit(data, parts, column, numbers, rounds, seed)) for numbers in COLUMNS[column]]
    numbers, best = min(fits, key=lambda each: max(errors(data, each[1].weights, parts.validation).values()))
    found = [parts.deviation * error for error in errors(data, best.weights, parts.test).values()]
    worst = best.site_losses.max(axis=1)[:: best.exchanges // rounds]  # DRFA asks twice a round
    return Fitted(
        float(np.mean(found)), max(found), json.dumps(numbers), json.dumps([round(float(each), 6) for each in worst]),
        time.perf_counter() - began,
    )


def fit(
    data: GraphData, parts: GraphSplit, column: str, numbers: Mapping[str, float], rounds: int, seed: int
) -> LocalTraining:
    """Train on the clients' rows, weighed by their number."""
    total = sum(targets.shape[0] for _, targets in parts.train.values())
    weights = {name: targets.shape[0] / total for name, (_, targets) in parts.train.items()}
    weights[min(weights)] += 1.0 - float(np.sum(list(weights.values())))
    return train_local(
        data.network, parts.train, method=column.lower(), parameters={**numbers, "seed": float(seed)}, rounds=rounds,
        weights=weights, seed=seed,
    )


def errors(data: GraphData, weights: FloatArray, rows: Mapping[str, Rows]) -> dict[str, float]:
    """Root mean squared error of each client."""
    return {
        name: float(np.sqrt(np.mean((data.network.predictions(weights, graphs) - targets) ** 2)))
        for name, (graphs, targets) in rows.items()
    }


def jobs(name: str, network: NetworkKind, fast: bool, settings: list[str]) -> list[Job]:
    """A cell for each split, setting and column."""
    rounds = 30 if fast else 100
    return [
        Job(
            (("data", name), ("setting", setting), ("column", column), ("seed", str(seed))),
            run_cell, (name, network, setting, column, seed, rounds),
        )
        for seed in range(1 if fast else 3) for setting in settings for column in COLUMNS
    ]


def table(rows: list[Row], name: str, network: NetworkKind) -> str:
    """Markdown: mean and deviation over the splits, beside what is printed."""
    lines = []
    for setting in SETTINGS:
        for column in COLUMNS:
            own = [row for row in rows if (row["setting"], row["column"]) == (setting, column)]
            if own:
                printed = PRINTED.get((name, network), {}).get(column) if setting == "three clients" else None
                texts = [_spread([float(row[what]) for row in own]) for what in ("average", "worst")]
                lines.append([setting, column, *texts, f"{printed[0]}, {printed[1]}" if printed else ""])
    return command.markdown(["setting", "column", "average", "worst client", "printed"], lines)


def _spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f}" + (f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else "")


def figure3(rows: list[Row], path: Path) -> None:
    """The worst client's training loss by round, a line a column, the first split of three clients."""
    lines = {
        str(row["column"]): (list(map(float, range(len(losses)))), losses)
        for row in rows if (row["setting"], row["seed"]) == ("three clients", "0") and (losses := _losses(row))
    }
    if lines:
        line_plots({"three clients": lines}, x_label="round", y_label="worst client's loss", path=path,
                   log_x=False, log_y=True, across=1)


def _losses(row: Row) -> list[float]:
    return [float(each) for each in json.loads(str(row["losses"]))]


def main() -> int:
    """Run, resume, write; 1 where the data are missing."""
    parser = command.parser(__doc__, "graphs")
    parser.set_defaults(out=Path("benchmark-results") / "drflm" / "graphs")
    parser.add_argument("--data", default="abalone", choices=["esol", "freesolv", "drawn", "abalone"],
                        help="default %(default)s; molecules need the extra molecules (RDKit)")
    parser.add_argument("--network", default="gcn", choices=get_args(NetworkKind), help="default %(default)s")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    args = parser.parse_args()
    args.out = args.out / (args.data if args.network == "gcn" else f"{args.data}-{args.network}")
    try:
        load_graphs(args.data, args.network)
    except (MissingDataError, ModuleNotFoundError) as missing:
        more = "; pip install 'ballast-diagnosis[molecules]'" if isinstance(missing, ModuleNotFoundError) else ""
        print(f"{missing}{more}", file=sys.stderr)
        return 1
    rows: list[dict[str, Any]] = run_cells(
        jobs(args.data, args.network, args.quick, args.settings), command.state_file(args), args.jobs
    )
    text = table(rows, args.data, args.network)
    (args.out / "graphs.md").write_text(text, encoding="utf-8")
    figure3(rows, args.out / "figure3.png")
    command.write_json(args.json, rows)
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
