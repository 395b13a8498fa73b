"""Table 1 and Figure 4 of the paper on relative fairness: accuracy and unfairness of six methods over 100 clients.

    python -m tests.benchmarks.papers.relative_fairness.table1 [--quick] [--data digits|fashion_mnist|mnist|cifar10]
                                                               [--rates equal|paper]

Protocol of section 7 and appendix J.2: 100 clients, Dirichlet 0.5, each split 80:20, a network of 50 hidden ReLU units
with half of them dropped in training, 100 rounds of 5 local steps over all rows of a client (SAFL one), A = B = the 20%
capped simplex, phi = 0.2. Scores are those of the part kept apart, of the last model: mean accuracy of all clients, of
the worst and the best 20 %, R_{A,B} and Gini of the losses. Three seeds draw clients, network and dropout; ``--quick``
takes one. Figure 4 is drawn from the same losses: the transformed Lorenz curve of each method, mean of the seeds.

MNIST's printed values stand beside the digits and beside Fashion-MNIST, too, which are stand-ins for it.

``--rates paper`` takes appendix J.2's learning rates. With them the three controlled methods hardly move on few rows of
small images, and a model that knows nothing is fair. ``--rates equal``, the default, lets all six go the same way in a
round: :data:`TRAVEL` gradients for the weights and :data:`CLIMB` losses for lambda, which is what J.2 gives DRFA (5
steps of 0.1, and 5 times 0.001). Nothing else is tuned, for no method.
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from models.fairness.indices import gini, relative_unfairness, transformed_lorenz_curve
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.simulation.local_training import train_local
from tests.benchmarks.command import at_least
from tests.benchmarks.data import MissingDataError
from tests.benchmarks.images import load_images
from tests.benchmarks.papers.fdr_svm.cells import Job, Row, run_cells
from tests.benchmarks.papers.fdr_svm.plots import line_plots
from tests.benchmarks.papers.relative_fairness.clients import Clients, digits, dirichlet_clients

ROUNDS, LOCAL_STEPS, SHARE, PHI = 100, 5, 0.2, 0.2
TRAVEL, CLIMB = 0.5, 5e-3
DATA = ("digits", "fashion_mnist", "mnist", "cifar10")
METHODS = {
    "FedAvg": "fedavg", "SCAFFOLD": "scaffold", "SAFL": "safl", "DRFA": "drfa", "Scaff-PD": "scaff-pd",
    "Scaff-PD-IA": "scaff-pd-ia",
}
OURS, NEXT = "Scaff-PD-IA", "Scaff-PD"
COLUMNS = ("all", "worst", "best", "relative_unfairness", "gini")
TITLES = ("All", "Worst-20 %", "Best-20 %", "R_{A,B}", "Gini")
PRINTED = {
    "mnist": {
        "FedAvg": (0.7080, 0.4239, 0.9376, 7.966, 0.3496),
        "SCAFFOLD": (0.7425, 0.6026, 0.8980, 3.154, 0.2047),
        "SAFL": (0.8976, 0.8295, 0.9538, 2.992, 0.2084),
        "DRFA": (0.8969, 0.8265, 0.9613, 4.378, 0.2520),
        "Scaff-PD": (0.8837, 0.8204, 0.9436, 2.567, 0.1870),
        "Scaff-PD-IA": (0.9005, 0.8483, 0.9523, 2.483, 0.1802),
    },
    "cifar10": {
        "FedAvg": (0.1704, 0.0006, 0.3937, 2.135, 0.1587),
        "SCAFFOLD": (0.1365, 0.0000, 0.3453, 1.612, 0.1013),
        "SAFL": (0.3560, 0.2532, 0.4711, 1.187, 0.0345),
        "DRFA": (0.3402, 0.0615, 0.5761, 2.277, 0.1671),
        "Scaff-PD": (0.3682, 0.2452, 0.4792, 1.187, 0.0345),
        "Scaff-PD-IA": (0.3693, 0.2504, 0.4752, 1.167, 0.0307),
    },
}
"""The paper's Table 1."""


@dataclass(frozen=True)
class Cell:
    """Scores of one method on one draw of the clients, least and largest lambda, each client's loss as a JSON list."""

    all: float
    worst: float
    best: float
    relative_unfairness: float
    gini: float
    least_weight: float
    largest_weight: float
    losses: str


def parameters(method: str, rates: str) -> dict[str, float]:
    """Parameters of a method: the paper's rates, or equal ways in a round."""
    equal = rates == "equal"
    step, climb = (TRAVEL / LOCAL_STEPS, CLIMB) if equal else (0.1, 1e-3)
    controlled = {"local_steps": LOCAL_STEPS, "step_size": 0.01, "global_step": TRAVEL if equal else 0.025}
    return {
        "fedavg": {"epochs": LOCAL_STEPS, "step_size": step},
        "scaffold": controlled,
        "safl": {"batch": 1.0, "step_size": TRAVEL if equal else 0.1, "mixture_step": climb, "worst_share": SHARE},
        # DRFA's own step for lambda counts the local steps in
        "drfa": {
            "batch": 1.0, "local_steps": LOCAL_STEPS, "step_size": step, "mixture_step": climb / LOCAL_STEPS,
            "worst_share": SHARE,
        },
        "scaff-pd": {**controlled, "dual_step": climb, "alpha": SHARE},
        "scaff-pd-ia": {**controlled, "dual_step": climb, "alpha": SHARE, "beta": SHARE, "phi": PHI},
    }[method]


def run_cell(data: str, method: str, rates: str, seed: int) -> Cell:
    """One cell: train, and score what was kept apart."""
    clients = dirichlet_clients(digits() if data == "digits" else load_images(data), seed)
    objective = NetworkObjective(10)
    run = train_local(
        objective, clients.training, method=method, parameters={**parameters(method, rates), "seed": seed},
        rounds=ROUNDS, seed=seed,
    )
    weighed = run.weights_of_sites
    losses = json.dumps([float(f"{loss:.6g}") for loss in client_losses(objective, run.weights, clients)])
    found = scores(objective, run.weights, clients)
    return Cell(*found, float(weighed.min()), float(weighed.max()), losses)


def client_losses(objective: NetworkObjective, weights: FloatArray, clients: Clients) -> list[float]:
    """Mean loss of each client on the rows that were kept apart."""
    return [objective.loss(weights, features, labels) for features, labels in clients.judging.values()]


def scores(
    objective: NetworkObjective, weights: FloatArray, clients: Clients
) -> tuple[float, float, float, float, float]:
    """Mean accuracy of all clients, of the worst and of the best fifth; R_{A,B} and Gini of the losses."""
    right, losses = [], client_losses(objective, weights, clients)
    for features, labels in clients.judging.values():
        right.append(float((objective.scores(weights, features).argmax(axis=1) == labels).mean()))
    ordered, fifth = np.sort(right), round(SHARE * len(right))
    return (
        float(ordered.mean()), float(ordered[:fifth].mean()), float(ordered[-fifth:].mean()),
        relative_unfairness(losses, SHARE, SHARE), gini(losses),
    )


def lorenz_curves(rows: list[Row]) -> dict[str, tuple[list[float], list[float]]]:
    """Figure 4: for each method shares of clients, best first, and the mean over the seeds of the transformed curve."""
    found = {}
    for name in METHODS:
        curves = [transformed_lorenz_curve(json.loads(row["losses"])) for row in rows if row["method"] == name]
        if curves:
            found[name] = (curves[0][0].tolist(), np.mean([curve for _, curve in curves], axis=0).tolist())
    return found


def summary(rows: list[Row], data: str) -> list[dict[str, Any]]:
    """Rows of the result: mean and deviation over the seeds, the printed values beside them."""
    found = []
    for name in METHODS:
        own = [row for row in rows if row["method"] == name]
        printed = PRINTED["cifar10" if data == "cifar10" else "mnist"][name]
        row: dict[str, Any] = {"method": name, "seeds": len(own)}
        for k, column in enumerate(COLUMNS):
            values = [each[column] for each in own]
            row[column] = float(np.mean(values))
            row[f"{column}_deviation"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
            row[f"printed_{column}"] = printed[k]
        found.append(row)
    return found


def verdicts(found: list[dict[str, Any]]) -> dict[str, bool]:
    """What the paper says of its table, asked of ours."""
    by = {row["method"]: row for row in found}
    rest = [row for row in found if row["method"] != OURS]
    return {
        "Scaff-PD-IA has the lowest R_{A,B}": all(
            by[OURS]["relative_unfairness"] < row["relative_unfairness"] for row in rest
        ),
        "Scaff-PD-IA has the lowest Gini": all(by[OURS]["gini"] < row["gini"] for row in rest),
        "its average accuracy is no lower than Scaff-PD's": by[OURS]["all"] >= by[NEXT]["all"],
    }


def table(found: list[dict[str, Any]], data: str) -> str:
    """Markdown: ours over the printed values, then the verdicts."""
    source = "CIFAR-10" if data == "cifar10" else "MNIST"
    lines = []
    for row in found:
        ours = [_pair(row[column], row[f"{column}_deviation"]) for column in COLUMNS]
        lines.append([row["method"], f"{data}, measured", *ours])
        lines.append([row["method"], f"{source}, printed", *[f"{row[f'printed_{column}']:g}" for column in COLUMNS]])
    text = command.markdown(["method", "", *TITLES], lines)
    said = "".join(f"- {what}: {'yes' if holds else '**no**'}\n" for what, holds in verdicts(found).items())
    return f"{text}\n{said}"


def _pair(mean: float, deviation: float | None) -> str:
    return f"{mean:.4g}" + (f" ± {deviation:.2g}" if deviation is not None else "")


def main() -> int:
    """Run, resume, write; 1 where the images are missing or a verdict is no."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument("--rates", choices=("equal", "paper"), default="equal")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows of the table as JSON, too")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("benchmark-results") / "relative_fairness" / "table1",
        help="folder of the CSV (the state of the run), the table and the figure (default %(default)s)",
    )
    parser.add_argument("--jobs", type=at_least(), metavar="N", help="processes (default: all cores)")
    args = parser.parse_args()
    seeds = range(1 if args.quick else 3)
    jobs = [
        Job((("method", name), ("seed", str(seed))), run_cell, (args.data, method, args.rates, seed))
        for seed in seeds
        for name, method in METHODS.items()
    ]
    try:
        rows = run_cells(jobs, args.out / f"cells-{args.data}-{args.rates}.csv", args.jobs)
    except MissingDataError as missing:
        print(missing, file=sys.stderr)
        return 1
    found = summary(rows, args.data)
    text = table(found, args.data)
    command.write_csv(args.out / f"table1-{args.data}-{args.rates}.csv", found)
    (args.out / f"table1-{args.data}-{args.rates}.md").write_text(text, encoding="utf-8")
    command.write_json(args.json, found)
    line_plots(
        {f"{args.data}: Lorenz curves of the losses": lorenz_curves(rows)}, x_label="share of the clients, best first",
        y_label="share of the losses, less half of that", path=args.out / f"figure4-{args.data}-{args.rates}.png",
        log_x=False, across=1,
    )
    print(text)
    return 0 if all(verdicts(found).values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
