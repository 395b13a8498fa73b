"""What noise on sums costs: ``python -m tests.benchmarks.noise [--json FILE]``.

Four plants in one cohort, a quarter of the rows held out, features scaled to [0, 1], hinge, l2, radius 1e-3, 40 rounds,
delta 1e-6, confidence .95, weights within the norm 20. Each row: table, rows in training, epsilon (inf: no noise, the
same method to a gap of 1e-3), certified gap, true worst-case risk and F-1 of the weights (medians of five runs).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Sequence

import numpy as np

from models.basics import FloatArray
from models.cohorts.dealing import deal
from models.cohorts.noise import METHOD, NoisePlan
from models.evaluation.scores import f1_score
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from models.simulation.noisy_rounds import train_with_noise
from models.worst_case.risk import site_risk
from tests.benchmarks.command import output_file
from tests.benchmarks.data import load_binary

TABLES = {"breast_cancer_wisconsin_diagnostic": ("M",), "rice_cammeo_osmancik": ("Cammeo",), "drawn": ()}
DRAWN_ROWS = 400_000
EPSILONS = (math.inf, 100.0, 10.0, 3.0, 1.0)
RUNS = 5


def federation(features: FloatArray, labels: FloatArray) -> dict[str, SiteProblem]:
    """Rows dealt to four plants."""
    spec = RobustSpec(1e-3, 1.0, "l2", None, True)
    parts = np.array_split(np.arange(labels.size), 4)
    return {f"plant-{g}": SiteProblem(features[rows], labels[rows], spec) for g, rows in enumerate(parts)}


def drawn() -> tuple[FloatArray, FloatArray]:
    """Ten features and two classes that a plane tells apart but for noise."""
    draw = np.random.default_rng(1)
    features = draw.uniform(size=(DRAWN_ROWS, 10))
    return features, np.sign((features - 0.5) @ draw.normal(size=10) + 0.2 * draw.normal(size=DRAWN_ROWS))


def measured(name: str, positive: tuple[str, ...]) -> list[dict[str, float | str]]:
    """Rows of the table for one table of data."""
    features, labels = load_binary(name, positive) if positive else drawn()
    draw = np.random.default_rng(0)
    order = draw.permutation(labels.size)
    low, high = features.min(axis=0), features.max(axis=0)
    scaled, signs = ((features - low) / np.where(high > low, high - low, 1.0))[order], labels[order]
    held = labels.size // 4
    sites, weights = federation(scaled[held:], signs[held:]), None
    found = list[dict[str, float | str]]()
    for epsilon in EPSILONS:
        gaps, risks, scores = list[float](), list[float](), list[float]()
        for run in range(RUNS if math.isfinite(epsilon) else 1):
            if math.isfinite(epsilon):
                plan = NoisePlan(epsilon, 1e-6, 0.95, 40, 20.0)
                noisy = train_with_noise(sites, deal(list(sites), 4), plan, random.Random(run).randrange)
                weights, gap = noisy.weights, noisy.certificate.gap
            else:
                exact = train(sites, method=METHOD, gap=1e-3, cohorts=deal(list(sites), 4))
                weights, gap = exact.weights, exact.certificate.gap
            gaps.append(gap)
            risks.append(float(np.mean([site_risk(weights, site).value for site in sites.values()])))
            told, true = scaled[:held] @ weights[:-1] + weights[-1] > 0, signs[:held] > 0
            both = (False, True)
            counts = np.array([[(told == fault)[true == row].sum() for fault in both] for row in both])
            scores.append(float(f1_score(counts.astype(np.float64))))
        medians = (statistics.median(each) for each in (gaps, risks, scores))
        found.append({"table": name, "rows": labels.size - held, "epsilon": epsilon} | dict(
            zip(("gap", "risk", "f1"), medians, strict=True)
        ))
        print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                        for key, value in found[-1].items()), flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=output_file)
    chosen = parser.parse_args(arguments)
    rows = [row for name, positive in TABLES.items() for row in measured(name, positive)]
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
