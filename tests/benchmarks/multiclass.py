"""F-1 of one-vs-rest and of all classes as one problem (Crammer-Singer), the radius chosen alike for both.

``python -m tests.benchmarks.multiclass [--splits 4] [--tables palmer_penguins ...]``. Each split trains on 70 % of the
rows, at most 700, features scaled to their ranges there; the radius is that of five with the best macro F-1 over three
folds. One-vs-rest is ``DRSVC``; the joint problem is solved by CVXPY, so that rounds play no part. Steel plates take
minutes a split.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from models.basics import FloatArray
from models.estimators import DRSVC
from tests.benchmarks.command import at_least, in_words
from tests.benchmarks.data import table_path

TABLES = ("palmer_penguins", "user_knowledge_modeling", "steel_plates_faults")
RADII = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
MOST_ROWS = 700
Fit = Callable[[FloatArray, Any, float], Callable[[FloatArray], Any]]


def read(name: str) -> tuple[FloatArray, Any]:
    """Features (N, P), texts as 0/1 columns, and class indices (N,); rows with a gap are left out."""
    with table_path(name).open(newline="") as file:
        head, *rows = list(csv.reader(file))
    rows = [row for row in rows if all(cell not in ("", "NA") for cell in row)]
    columns = []
    for j in range(len(head) - 1):
        cells = np.array([row[j] for row in rows])
        try:
            columns.append(cells.astype(np.float64)[:, None])
        except ValueError:
            columns.append((cells[:, None] == np.unique(cells)[None, 1:]).astype(np.float64))
    return np.hstack(columns), np.unique([row[-1] for row in rows], return_inverse=True)[1]


def one_vs_rest(features: FloatArray, classes: Any, radius: float) -> Callable[[FloatArray], Any]:
    """Diagnosis by planes against the rest."""
    model = DRSVC(radius=radius, calibration_folds=0, gap=1e-3).fit(features, classes)
    return model.predict


def crammer_singer(features: FloatArray, classes: Any, radius: float, cost: float = 1.0) -> Callable[[FloatArray], Any]:
    """Diagnosis by the optimum of the joint problem."""
    (count, n_features), n_classes = features.shape, int(classes.max()) + 1
    planes, last, price = cp.Variable((n_classes, n_features)), cp.Variable(n_classes), cp.Variable(nonneg=True)
    worst, high, low = cp.Variable(count, nonneg=True), cp.Variable(count), cp.Variable(count)
    own, wide = np.eye(n_classes)[classes], np.ones((1, n_classes))
    scores = features @ planes.T + np.ones((count, 1)) @ cp.reshape(last, (1, n_classes), order="C")
    told = cp.sum(cp.multiply(scores, own), axis=1)
    worst_of, told_of, high_of, low_of = (
        cp.reshape(each, (count, 1), order="C") @ wide for each in (worst, told, high, low)
    )
    apart = [cp.norm(planes[k] - planes[j]) <= price for k in range(n_classes) for j in range(k)]
    terms = [
        worst_of >= scores - told_of + (1.0 - own), high_of >= scores, low_of <= scores,
        worst >= 1.0 + high - low - cost * price, *apart,
    ]
    cp.Problem(cp.Minimize(radius * price + cp.sum(worst) / count), terms).solve(solver="CLARABEL")
    slopes, ends = np.asarray(planes.value), np.asarray(last.value)
    return lambda rows: (rows @ slopes.T + ends).argmax(axis=1)


def macro_f1(true: Any, said: Any) -> float:
    """Mean over the classes that the rows have."""
    return float(np.mean([
        2.0 * ((true == k) & (said == k)).sum() / ((true == k).sum() + (said == k).sum()) for k in np.unique(true)
    ]))


def split_score(fit: Fit, features: FloatArray, classes: Any, seed: int) -> tuple[float, float]:
    """Held-out F-1 of one split, and the radius that the folds chose."""
    order = np.random.default_rng(seed).permutation(len(classes))
    cut = min(int(0.7 * len(classes)), MOST_ROWS)
    train, test = features[order[:cut]], features[order[cut:]]
    known, own = np.unique(classes[order[:cut]], return_inverse=True)
    low, width = train.min(axis=0), np.ptp(train, axis=0)
    train, test = ((part - low) / np.where(width > 0, width, 1.0) for part in (train, test))
    fold = np.arange(cut) % 3

    def score(radius: float) -> float:
        parts = [(fold != k, fold == k) for k in range(3)]
        return float(np.mean([macro_f1(own[t], fit(train[r], own[r], radius)(train[t])) for r, t in parts]))

    radius = max(RADII, key=score)
    return macro_f1(classes[order[cut:]], known[fit(train, own, radius)(test)]), radius


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each table and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=at_least(), default=4)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    chosen = parser.parse_args(arguments)
    for name in chosen.tables:
        table_path(name)  # one that is not there is told before any is measured
    ways: dict[str, Fit] = {"one-vs-rest": one_vs_rest, "crammer-singer": crammer_singer}
    for name in chosen.tables:
        features, classes = read(name)
        for way, fit in ways.items():
            found = [split_score(fit, features, classes, seed) for seed in range(chosen.splits)]
            scores = np.array([score for score, _ in found])
            radii = ", ".join(f"{radius:g}" for _, radius in found)
            print(f"{name} {way}: {scores.mean():.4f} +- {scores.std():.4f}, radii {radii}", flush=True)


if __name__ == "__main__":
    raise SystemExit(in_words(main))
