"""Rounds and bytes to a certified gap: ``python -m tests.benchmarks.rounds [--json FILE] [--plot FILE]``.

Breast Cancer Wisconsin Diagnostic: 398 training rows by seed 1, features scaled to [-1, 1], rows ordered by the first
feature plus N(0, .3) noise and cut into four sites, so that the sites differ; no intercept, label_flip_cost 1, radius
1 / (10 N_g). ``rounds`` is null when 220 were not enough; ``bytes_per_site`` counts the float64 numbers that a site
sent until then.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from models.federation import Training, train
from models.problem import RobustSpec, SiteProblem, TransportNorm
from tests.benchmarks.data import load_binary

GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
MOST_ROUNDS = 220
TRAINING_ROWS = 398
SITES = 4
METHODS: tuple[tuple[str, str, Mapping[str, float]], ...] = (
    *((f"SM, gamma {gamma:g}", "fdr-sm", {"step_size": gamma}) for gamma in (1.0, 10.0, 100.0)),
    *((f"ADMM, rho {rho:g}", "fdr-admm", {"rho": rho}) for rho in (1e-3, 1e-2, 1e-1, 1.0)),
    *((f"ADMM-SC, rho {rho:g}", "fdr-admm-sc", {"rho": rho}) for rho in (1e-3, 1e-2)),
    ("level bundle without prox cuts", "level-bundle-plain", {}),
    ("level bundle (default)", "level-bundle", {}),
)


def skewed_sites(seed: int, transport_norm: TransportNorm) -> dict[str, SiteProblem]:
    """Build the four sites."""
    draw = np.random.default_rng(seed)
    features, labels = load_binary("breast_cancer_wisconsin_diagnostic", positive=("M",))
    chosen = draw.permutation(labels.shape[0])[:TRAINING_ROWS]
    features, labels = features[chosen], labels[chosen]
    low, high = features.min(axis=0), features.max(axis=0)
    features = 2.0 * (features - low) / (high - low) - 1.0
    order = np.argsort(features[:, 0] + draw.normal(0.0, 0.3, TRAINING_ROWS))
    return {
        f"site-{g + 1}": SiteProblem(
            features[rows], labels[rows], RobustSpec(1.0 / (10 * rows.size), 1.0, transport_norm, None, False)
        )
        for g, rows in enumerate(np.array_split(order, SITES))
    }


def rows_of(name: str, training: Training, seconds: float) -> list[dict[str, object]]:
    """A row for each gap."""
    rows: list[dict[str, object]] = []
    for gap in GAPS:
        reached = next((k for k, each in enumerate(training.history) if each.gap <= gap), None)
        sent = None if reached is None else sum(each.bytes_per_site for each in training.history[: reached + 1])
        rows.append({"method": name, "gap": gap, "rounds": None if reached is None else reached + 1,
                     "bytes_per_site": sent, "seconds_in_all": seconds})
    return rows


def plot(trainings: Mapping[str, Training], path: Path) -> None:
    """Gap against rounds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    styles = ["-", "--", ":", "-."]
    for k, (name, training) in enumerate(trainings.items()):
        gaps = [max(each.gap, 1e-12) for each in training.history]
        axes.semilogy(range(1, len(gaps) + 1), gaps, styles[k % 4], label=name, linewidth=2 if "bundle" in name else 1)
    axes.set(xlabel="round", ylabel="certified relative gap", ylim=(1e-7, 1.5), xlim=(0, MOST_ROUNDS))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the rows here")
    parser.add_argument("--plot", type=Path, help="write the plot here (PNG)")
    parser.add_argument("--transport-norm", choices=("l1", "l2", "linf"), default="l2")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args(arguments)
    sites = skewed_sites(wanted.seed, wanted.transport_norm)
    rows: list[dict[str, object]] = []
    trainings: dict[str, Training] = {}
    print(f"{'rounds to a certified gap of':<34}" + "".join(f"{gap:>8.0e}" for gap in GAPS) + f"{'bytes/site':>12}")
    for name, method, parameters in METHODS:
        started = time.perf_counter()
        training = train(sites, method=method, parameters=parameters, gap=min(GAPS), max_rounds=MOST_ROUNDS)
        mine = rows_of(name, training, time.perf_counter() - started)
        rows += mine
        trainings[name] = training
        total = sum(each.bytes_per_site for each in training.history)
        cells = "".join(f"{'-' if row['rounds'] is None else row['rounds']!s:>8}" for row in mine)
        print(f"{name:<34}{cells}{total:>12}", flush=True)
    if wanted.json:
        wanted.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    if wanted.plot:
        plot(trainings, wanted.plot)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
