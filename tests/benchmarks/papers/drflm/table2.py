"""Table 2 of the DRFLM paper: worst-client accuracy with and without flipped training labels.

``python -m tests.benchmarks.papers.drflm.table2 [--quick] [--model network|linear] [--data adult|fashion_mnist]
[--rounds N] [--folds N]``

Adult: two clients, doctorate and non-doctorate. Fashion-MNIST: three clients, a class each; only where it is at hand.
Three seeds; 30 % of the training labels turned in the second half of the table.

Linear: logistic regression; each column's setting is the one of the best worst-client accuracy on validation rows, over
the folds of a seed, out of two to four. Network: 50 hidden units, one setting for all columns, which on Adult is
trained until it fits its rows, noise and all. Full: all rows, 1000 rounds, as the paper has it, four folds. Quick: at
most 3000 rows of a client, 150 rounds. ``--rounds`` and ``--folds`` shorten a run: so many rounds, and only the first
folds of each seed.
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
import functools
import itertools
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from models.methods.local_sgd.objectives.base import Rows
from tests.benchmarks.command import at_least
from tests.benchmarks.data import MissingDataError
from tests.benchmarks.papers.drflm.adult import load_adult
from tests.benchmarks.papers.drflm.clients import FOLDS, folds
from tests.benchmarks.papers.drflm.fashion import load_fashion
from tests.benchmarks.papers.drflm.settings import SETTINGS, correct, fit, settings_of
from tests.benchmarks.papers.fdr_svm.cells import Job, Row, run_cells

SETS = {"adult": ("Adult", load_adult, 2), "fashion_mnist": ("FMNIST", load_fashion, 3)}
FLIPS = {"": 0.0, "+Flip": 0.3}
SEEDS = (0, 1, 2)
PRINTED = {
    "FMNIST": {"FedAvg": 0.7064, "DRFA": 0.7104, "DRFLM": 0.7089},
    "FMNIST+Flip": {"FedAvg": 0.6721, "DRFA": 0.6628, "DRFLM": 0.6978},
    "Adult": {"FedAvg": 0.6821, "DRFA": 0.6731, "DRFLM": 0.6987},
    "Adult+Flip": {"FedAvg": 0.6623, "DRFA": 0.6486, "DRFLM": 0.6866},
}


@dataclass(frozen=True)
class Fitted:
    """Accuracy of a setting on each client over the four folds, on validation and on test rows."""

    validation_worst: float
    worst_client: float
    accuracies: str
    seconds: float


@dataclass(frozen=True)
class Size:
    """How much of the experiment is run: rounds, folds of a seed, and the most rows of a client (None: all)."""

    rounds: int = 1000
    folds: int = FOLDS
    most: int | None = None


QUICK = Size(150, most=3000)


@functools.cache
def load_clients(chosen: str) -> Mapping[str, Rows]:
    """All rows of a data set by client, read once in a process."""
    return SETS[chosen][1]()


def run_cell(model: str, chosen: str, flips: str, column: str, setting: int, seed: int, size: Size) -> Fitted:
    """One setting of a column for a seed."""
    n_classes = SETS[chosen][2]
    began, clients = time.perf_counter(), load_clients(chosen)
    validation: dict[str, list[np.ndarray]] = {name: [] for name in clients}
    test: dict[str, list[np.ndarray]] = {name: [] for name in clients}
    splits = folds(clients, seed, FLIPS[flips], most=size.most, n_classes=n_classes)
    for split in itertools.islice(splits, size.folds):
        weights = fit(
            column, _settings(model, chosen)[column][setting], split.train, model=model,
            n_classes=n_classes, rounds=size.rounds, seed=seed,
        )
        for name in clients:
            validation[name].append(correct(weights, split.validation[name], n_classes, model))
            test[name].append(correct(weights, split.test[name], n_classes, model))
    worst = min(float(np.concatenate(rates).mean()) for rates in validation.values())
    tested = {name: float(np.concatenate(rates).mean()) for name, rates in test.items()}
    return Fitted(worst, min(tested.values()), json.dumps(tested), time.perf_counter() - began)


def jobs(model: str, chosen: str, size: Size, columns: list[str]) -> list[Job]:
    """All settings of all columns; the level bundle trains two classes only."""
    settings = _settings(model, chosen)
    return [
        Job(
            (("data", SETS[chosen][0] + flips), ("column", column), ("setting", str(setting)), ("seed", str(seed))),
            run_cell,
            (model, chosen, flips, column, setting, seed, size),
        )
        for seed in SEEDS
        for flips in reversed(FLIPS)
        for column in columns
        if column in settings
        for setting in range(len(settings[column]))
    ]


def summary(rows: list[Row], model: str = "linear") -> list[dict[str, Any]]:
    """One row for each data set, column and seed: the setting that validation chose, and its test accuracies."""
    found = []
    for data in PRINTED:
        chosen_set = next(name for name, (title, *_) in SETS.items() if data.startswith(title))
        for column, settings in _settings(model, chosen_set).items():
            for seed in SEEDS:
                own = [r for r in rows if (r["data"], r["column"], r["seed"]) == (data, column, str(seed))]
                if own:
                    chosen = max(own, key=lambda row: (row["validation_worst"], -int(row["setting"])))
                    found.append(
                        {
                            "data": data, "column": column, "seed": seed,
                            "worst_client": chosen["worst_client"], "validation_worst": chosen["validation_worst"],
                            "accuracies": chosen["accuracies"],
                            "setting": json.dumps(settings[int(chosen["setting"])]),
                        }
                    )
    return found


def reached(found: list[dict[str, Any]]) -> dict[str, bool]:
    """Whether DRFLM's mean worst-client accuracy under flips is above that of FedAvg and of DRFA."""
    flipped = next(row["data"] for row in found if row["data"].endswith("+Flip"))
    means = {column: _mean(found, flipped, column) for column in SETTINGS}
    return {rival: means["DRFLM"] > means[rival] for rival in ("FedAvg", "DRFA")}


def table(found: list[dict[str, Any]]) -> str:
    """Markdown: means over the seeds beside the printed values, each seed, and the verdict."""
    lines = []
    for data in PRINTED:
        for column in SETTINGS:
            own = [row for row in found if (row["data"], row["column"]) == (data, column)]
            if own:
                printed = PRINTED[data].get(column)
                spread = float(np.std([row["worst_client"] for row in own], ddof=1)) if len(own) > 1 else 0.0
                lines.append(
                    [
                        data, column, f"{printed:.4f}" if printed else "",
                        f"{_mean(found, data, column):.4f} ± {spread:.4f}",
                        ", ".join(f"{row['worst_client']:.4f}" for row in own),
                    ]
                )
    text = "Worst-client accuracy.\n\n"
    text += command.markdown(["data", "column", "printed", "measured", "seeds"], lines)
    if {row["column"] for row in found} >= {"FedAvg", "DRFA", "DRFLM"}:
        for rival, above in reached(found).items():
            text += f"\nWith flips, mean of three seeds: DRFLM is {'' if above else '**not** '}above {rival}."
    return text + "\n"


def _settings(model: str, chosen: str) -> Mapping[str, tuple[dict[str, float], ...]]:
    return settings_of(model, images=chosen == "fashion_mnist")


def _mean(found: list[dict[str, Any]], data: str, column: str) -> float:
    own = [row["worst_client"] for row in found if (row["data"], row["column"]) == (data, column)]
    return float(np.mean(own)) if own else float("nan")


def main() -> int:
    """Run, resume, write; 1 where the data are missing or DRFLM is not ahead under flips."""
    parser = command.parser(__doc__, "table2")
    parser.set_defaults(out=Path("benchmark-results") / "drflm" / "table2")
    parser.add_argument("--data", default="adult", choices=list(SETS), help="default %(default)s")
    parser.add_argument("--model", default="network", choices=["linear", "network"], help="default %(default)s")
    parser.add_argument(
        "--rounds", type=at_least(), metavar="N", help="of each training (default: 1000; quick: 150)"
    )
    parser.add_argument("--folds", type=int, choices=range(1, FOLDS + 1), help="of each seed (default: all)")
    parser.add_argument("--columns", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    args = parser.parse_args()
    args.out = args.out / f"{args.data}-{args.model}"
    try:
        load_clients(args.data)
    except MissingDataError as missing:
        print(missing, file=sys.stderr)
        return 1
    size = QUICK if args.quick else Size()
    size = replace(size, rounds=args.rounds or size.rounds, folds=args.folds or size.folds)
    state = command.state_file(args)
    if args.rounds or args.folds:
        state = state.with_name(f"{state.stem}-{size.rounds}-rounds-{size.folds}-folds.csv")
    rows = run_cells(jobs(args.model, args.data, size, args.columns), state, args.jobs)
    found = summary(rows, args.model)
    text = table(found)
    args.out.mkdir(parents=True, exist_ok=True)
    command.write_csv(args.out / "table2.csv", found)
    (args.out / "table2.md").write_text(text, encoding="utf-8")
    command.write_json(args.json, found)
    print(text)
    return 0 if all(reached(found).values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
