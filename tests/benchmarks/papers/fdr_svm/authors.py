"""The federated rivals as the authors' published code runs them, where that differs from the paper's text.

Steps fall like ``1 / sqrt``, not like ``1 / t``: FedSGD's over the rounds, FedDRO's over all local steps of all rounds,
those of FedAvg and FedProx over the epochs of one round, after which they begin anew. So the last two never settle.
FedDRO takes five local steps a round, each on a batch of its own draw, divides by a tracked mean of
``exp(loss / temperature)`` that begins at 0 and that all sites share at every step (the text averages once a round),
leaves out rows whose hinge is 0, and has no ridge. Written anew after that description, in plain NumPy, without
certificates; draws are from a fixed seed, so that a short run is the beginning of a long one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.papers.fdr_svm.printed import Site

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


def slope(weights: FloatArray, features: FloatArray, labels: FloatArray, ridge: float) -> FloatArray:
    """Subgradient (P,) of mean hinge + ``ridge ||w||^2``; a row at its margin exactly has none."""
    active = labels * (features @ weights) < 1.0
    return np.asarray(-(active * labels) @ features / labels.shape[0] + 2.0 * ridge * weights)


def fedsgd(sites: Sequence[Site], step: float, rounds: int) -> Iterator[FloatArray]:
    """The server's point after each round: one step on all rows, of ``step / sqrt(t)``."""
    weights = np.zeros(sites[0].features.shape[1])
    for t in range(1, rounds + 1):
        found = [slope(weights, site.features, site.labels, site.radius) for site in sites]
        weights = weights - step / np.sqrt(t) * np.mean(found, axis=0)
        yield weights


def fedavg(sites: Sequence[Site], step: float, rounds: int, *, proximal: float = 0.0) -> Iterator[FloatArray]:
    """The server's point after each round: five epochs of five batches, of ``step / sqrt(epoch)``.

    ``proximal`` is FedProx's mu: the pull of each step towards the round's first point.
    """
    random = np.random.default_rng(SEED)
    weights = np.zeros(sites[0].features.shape[1])
    for _ in range(rounds):
        ended = []
        for site in sites:
            point, size = weights, int(BATCH * site.labels.shape[0])
            for epoch in range(1, EPOCHS + 1):
                order = random.permutation(site.labels.shape[0])
                for start in range(0, int(1 / BATCH) * size, size):
                    rows = order[start : start + size]
                    found = slope(point, site.features[rows], site.labels[rows], site.radius)
                    point = point - step / np.sqrt(epoch) * (found + proximal * (point - weights))
            ended.append(point)
        weights = np.mean(ended, axis=0)
        yield weights


def feddro(
    sites: Sequence[Site], step: float, rounds: int, *, temperature: float, tracking: float
) -> Iterator[FloatArray]:
    """The server's point after each round of five compositional steps, of ``step / sqrt(t)`` over all steps."""
    random, inner = np.random.default_rng(SEED), 0.0
    local = np.zeros((len(sites), sites[0].features.shape[1]))
    for t in range(1, EPOCHS * rounds + 1):
        lifted, inward = [], []
        for point, site in zip(local, sites, strict=True):
            rows = random.choice(site.labels.shape[0], int(BATCH * site.labels.shape[0]), replace=False)
            features, labels = site.features[rows], site.labels[rows]
            losses = 1.0 - labels * (features @ point)
            with np.errstate(over="ignore"):
                counts = np.where(losses > 0.0, np.exp(np.maximum(losses, 0.0) / temperature), 0.0)
            lifted.append(float(counts.mean()))
            inward.append(-(counts * labels) @ features / labels.shape[0])
        inner = (1.0 - tracking) * inner + tracking * float(np.mean(lifted))
        if inner > 0.0:
            local = local - step / np.sqrt(t) / (temperature * inner) * np.array(inward)
        if t % EPOCHS == 0:
            local[:] = local.mean(axis=0)
            yield local[0].copy()
