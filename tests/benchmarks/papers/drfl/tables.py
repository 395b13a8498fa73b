"""The three tables of the study and what is done to them before a model sees them: scaling, split, classes, noise.

Features are scaled so that the training rows, before any noise, fill [-1, 1]. 60 % of the rows are for training, 40 %
for testing; both parts are dealt at random to 3 clients of equal size. One generator, seeded by the repetition, does
all of it, so every method sees the same rows, folds and noise.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.data import load_binary, table_path

N_CLIENTS, N_FOLDS = 3, 5
TRAIN_SHARE = 0.6
MINORITY_KEPT = (0.5, 0.5, 1.0)
"""Share of each client's rows of its rarer class that stay in the imbalanced setting (section 6.2)."""

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class Noise:
    """Gaussian noise on every feature."""

    mean: float
    deviation: float

    def on(self, features: FloatArray, rng: np.random.Generator) -> FloatArray:
        """The features with the noise added."""
        return features + self.mean + self.deviation * rng.standard_normal(features.shape)


@dataclass(frozen=True)
class Sweep:
    """A family of noises on the test set: ``title`` of the panel, ``axis`` of the levels, and one noise a level."""

    title: str
    axis: str
    levels: tuple[float, ...]
    noises: tuple[Noise, ...]


def sweeps(deviation: float, mean: float, ratio: float, top: float = 2.0) -> tuple[Sweep, ...]:
    """The three panels: the mean rises; the deviation rises; both do, mean = ratio * deviation."""
    steps = tuple(float(level) for level in np.linspace(0.0, top, 9))
    last = tuple(level / max(ratio, 1.0) for level in steps)
    return (
        Sweep(f"mean rises, deviation {deviation:g}", "mean", steps, tuple(Noise(m, deviation) for m in steps)),
        Sweep(f"deviation rises, mean {mean:g}", "deviation", steps, tuple(Noise(mean, d) for d in steps)),
        Sweep(f"mean = {ratio:g} deviation", "deviation", last, tuple(Noise(ratio * d, d) for d in last)),
    )


@dataclass(frozen=True)
class Scenario:
    """A row of panels: table, task, noise in the training set of client 1, sweeps, and whether classes are thinned."""

    name: str
    figure: int
    file: str
    task: Task
    training_noise: Noise
    sweeps: tuple[Sweep, ...]
    imbalanced: bool = False


HEART, CANCER = "statlog_heart", "breast_cancer_wisconsin_original"
SCENARIOS = (
    Scenario("heart", 2, HEART, "classification", Noise(0.0, 0.5), sweeps(0.5, 0.0, 1.0)),
    Scenario("abalone", 2, "abalone", "regression", Noise(0.0, 0.5), sweeps(0.5, 0.0, 1.0, top=1.0)),
    Scenario("breast cancer", 3, CANCER, "classification", Noise(0.5, 0.5), sweeps(2.0, 0.0, 2.0)),
    Scenario(
        "breast cancer, imbalanced",
        4,
        CANCER,
        "classification",
        Noise(0.5, 0.5),
        sweeps(0.4, 0.1, 2.0),
        imbalanced=True,
    ),
    Scenario("heart, imbalanced", 5, HEART, "classification", Noise(0.0, 0.5), sweeps(0.1, 0.5, 0.5), imbalanced=True),
)
"""Fixed values and ratios as the captions of Figures 3 to 5 print them; those of Figure 2 are not printed."""

POSITIVE = {HEART: ("2",), CANCER: ("4",)}
SEXES = {"M": 1.0, "F": 2.0, "I": 3.0}


@dataclass(frozen=True)
class Rows:
    """Rows with the client of each (n,), and the fold of each (n,) where they are for training."""

    features: FloatArray
    labels: FloatArray
    client: np.ndarray
    fold: np.ndarray

    def where(self, chosen: np.ndarray) -> Rows:
        """The chosen rows."""
        return Rows(self.features[chosen], self.labels[chosen], self.client[chosen], self.fold[chosen])


def load(scenario: Scenario) -> tuple[FloatArray, FloatArray]:
    """Features (N, P) and labels or targets (N,); the sex of an abalone as 1 male, 2 female, 3 infant."""
    if scenario.task == "classification":
        return load_binary(scenario.file, POSITIVE[scenario.file])
    with table_path(scenario.file).open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    features = np.array([[SEXES[row[0]], *map(float, row[1:-1])] for row in rows])
    return features, np.array([float(row[-1]) for row in rows])


def split(scenario: Scenario, features: FloatArray, labels: FloatArray, repetition: int) -> tuple[Rows, Rows]:
    """Training rows, noise in those of client 1, and test rows, without noise yet."""
    rng = np.random.default_rng([repetition, scenario.figure, sum(scenario.file.encode())])
    order = rng.permutation(labels.shape[0])
    n_train = round(TRAIN_SHARE * labels.shape[0])
    train, test = order[:n_train], order[n_train:]
    low, high = features[train].min(axis=0), features[train].max(axis=0)
    scaled = 2.0 * (features - low) / np.where(high > low, high - low, 1.0) - 1.0
    parts = []
    for rows in (train, test):
        client = np.arange(rows.shape[0]) % N_CLIENTS
        parts.append(Rows(scaled[rows], labels[rows], client, np.zeros_like(client)))
    training = thinned(parts[0], rng) if scenario.imbalanced else parts[0]
    noisy = training.features.copy()
    first = training.client == 0
    noisy[first] = scenario.training_noise.on(noisy[first], rng)
    return replace(training, features=noisy, fold=folds(training.client, rng)), parts[1]


def thinned(rows: Rows, rng: np.random.Generator) -> Rows:
    """Rows in which every client keeps a share of its rarer class only."""
    stays = np.ones(rows.labels.shape[0], dtype=bool)
    for client, kept in enumerate(MINORITY_KEPT):
        own = rows.client == client
        rarer = 1.0 if (rows.labels[own] > 0).mean() <= 0.5 else -1.0
        minority = rng.permutation(np.flatnonzero(own & (rows.labels == rarer)))
        stays[minority[round(kept * minority.shape[0]) :]] = False
    return rows.where(stays)


def folds(client: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fold of each row, drawn within each client."""
    fold = np.zeros(client.shape[0], dtype=int)
    for s in range(N_CLIENTS):
        own = np.flatnonzero(client == s)
        fold[own] = rng.permutation(own.shape[0]) * N_FOLDS // own.shape[0]
    return fold
