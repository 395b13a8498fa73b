"""The federated rivals as the authors' published code runs them, where that differs from the paper's text.

Steps fall like ``1 / sqrt``, not like ``1 / t``: FedSGD's over the rounds, FedDRO's over all local steps of all rounds,
those of FedAvg and FedProx over the epochs of one round, after which they begin anew. So the last two never settle.
FedDRO takes five local steps a round, each on a batch of its own draw, divides by a tracked mean of
``exp(loss / temperature)`` that begins at 0 and that all sites share at every step (the text averages once a round),
leaves out rows whose hinge is 0, and has no ridge. Written anew after that description, in plain NumPy, without
certificates; draws are from a fixed seed, so that a short run is the beginning of a long one, and they depend on the
sizes of the sites alone: all candidates of a grid see the same, and go through a run side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.papers.fdr_svm.runs import Batch, Round, Runs, Sizes

EPOCHS, BATCH = 5, 0.2
SEED = 0

IN_UNIT_BOX = ("Rice", "pump")
"""Sets whose rivals the code gives features in [0, 1]; the others get raw ones."""
TEMPERATURES: Mapping[str, float] = {
    "Banknote": 1e2, "BCW": 1e4, "CB": 1e1, "MM": 1e2, "Parkinson's": 5e3, "Rice": 1.0, "UKM": 1e1, "pump": 1e1,
}
"""FedDRO's temperature by set."""
TRACKING: Mapping[str, float] = {"UKM": 0.01}
"""FedDRO's tracking over its first step; 0.1 for the other sets."""


def slope(points: FloatArray, batch: Batch, ridges: FloatArray) -> FloatArray:
    """Subgradient of mean hinge + ``ridge ||w||^2`` at points (R, G, C, P); a row at its margin exactly has none."""
    active = (batch.margins(points) < 1.0).astype(float)
    return np.asarray(2.0 * ridges[:, :, None, None] * points - batch.mean_of_rows(active))


def fedsgd(runs: Runs, steps: FloatArray, rounds: int) -> Iterator[FloatArray]:
    """The server's points (R, C, P) after each round: one step on all rows, of ``steps / sqrt(t)``, steps (C,)."""
    points, batch = _zeros(runs, steps), runs.whole
    for t in range(1, rounds + 1):
        found = slope(points, batch, runs.ridges).mean(axis=1, keepdims=True)
        points = points - (steps / np.sqrt(t))[:, None] * found
        yield points[:, 0]


def fedavg(runs: Runs, steps: FloatArray, rounds: int, *, proximal: FloatArray) -> Iterator[FloatArray]:
    """The server's points (R, C, P) after each round: five epochs of five batches, of ``steps / sqrt(epoch)``.

    ``proximal`` (C,) is FedProx's mu: the pull of each step towards the round's first point.
    """
    start, pull = _zeros(runs, steps), proximal[:, None]
    batches = runs.batches(permuted)
    for _ in range(rounds):
        points = start
        for number, batch in enumerate(next(batches)):
            length = (steps / np.sqrt(1 + number // int(1 / BATCH)))[:, None]
            points = points - length * (slope(points, batch, runs.ridges) + pull * (points - start))
        start = _averaged(points)
        yield start[:, 0]


def feddro(
    runs: Runs, steps: FloatArray, rounds: int, *, temperature: FloatArray, tracking: FloatArray
) -> Iterator[FloatArray]:
    """The server's points (R, C, P) after each round of five compositional steps, of ``steps / sqrt(t)`` over all.

    ``temperature`` (C,), ``tracking`` (C,).
    """
    points, inner, t = _zeros(runs, steps), np.zeros((len(runs.sizes), steps.shape[0])), 0
    batches = runs.batches(chosen)
    for _ in range(rounds):
        for batch in next(batches):
            t += 1
            losses = 1.0 - batch.margins(points)
            counted = (batch.labels[:, :, None, :] != 0.0) & (losses > 0.0)
            # A candidate that diverges comes to infinity and then to what is no number; it goes on without complaint.
            with np.errstate(over="ignore", invalid="ignore"):
                lifted = np.where(counted, np.exp(np.maximum(losses, 0.0) / temperature[:, None]), 0.0)
                means = lifted.sum(axis=3) / batch.counts[:, :, None]
                inner = (1.0 - tracking) * inner + tracking * means.mean(axis=1)
                begun = inner > 0.0
                lengths = np.where(begun, steps / np.sqrt(t) / (temperature * np.where(begun, inner, 1.0)), 0.0)
                moved = points + lengths[:, None, :, None] * batch.mean_of_rows(lifted)
                points = np.where(begun[:, None, :, None], moved, points)
        points = _averaged(points)
        yield points[:, 0]


def permuted(sizes: Sizes) -> Iterator[Round]:
    """Five epochs a round, of five batches each: a permutation of a site's rows in each epoch, site by site."""
    random = np.random.default_rng(SEED)
    while True:
        orders = [[random.permutation(size) for _ in range(EPOCHS)] for size in sizes]
        yield [
            [order[epoch][batch * int(BATCH * order[epoch].shape[0]) :][: int(BATCH * order[epoch].shape[0])]
             for order in orders]
            for epoch in range(EPOCHS) for batch in range(int(1 / BATCH))
        ]


def chosen(sizes: Sizes) -> Iterator[Round]:
    """Five steps a round, each on a batch of its own draw."""
    random = np.random.default_rng(SEED)
    while True:
        yield [[random.choice(size, int(BATCH * size), replace=False) for size in sizes] for _ in range(EPOCHS)]


def _zeros(runs: Runs, steps: FloatArray) -> FloatArray:
    n_runs, n_sites, _, p = runs.features.shape
    return np.zeros((n_runs, n_sites, steps.shape[0], p))


def _averaged(points: FloatArray) -> FloatArray:
    """Every site at the mean of the sites."""
    return np.broadcast_to(points.mean(axis=1, keepdims=True), points.shape)
