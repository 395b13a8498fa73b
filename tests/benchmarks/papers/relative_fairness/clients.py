"""Clients of the RF paper's Table 1: images spread over clients by Dirichlet draws, a part of each kept for judging."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray

Rows = tuple[FloatArray, FloatArray]
LEAST_ROWS = 5
"""Rows that every client must get: with fewer there is nothing left to judge by."""
_TRIES = 100_000


@dataclass(frozen=True)
class Clients:
    """Training rows and rows to judge by, of every client, by its name; features (N, P), class indices (N,)."""

    training: dict[str, Rows]
    judging: dict[str, Rows]


def digits() -> Rows:
    """The 1,797 images of 8 x 8 pixels that scikit-learn brings, in [0, 1]."""
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    return features / 16.0, labels.astype(np.float64)


def dirichlet_clients(rows: Rows, seed: int, *, n_clients: int = 100, concentration: float = 0.5) -> Clients:
    """Spread rows over clients as Yurochkin et al. (2019) do, and split each client 80:20.

    For every class a vector of shares over the clients is drawn from the Dirichlet distribution, and the rows of the
    class, in a drawn order, are cut by it; all is drawn anew until every client has at least :data:`LEAST_ROWS` rows.
    """
    features, labels = rows
    random = np.random.default_rng([seed, 0])
    for _ in range(_TRIES):
        parts = _spread(labels, random, n_clients, concentration)
        if min(len(part) for part in parts) >= LEAST_ROWS:
            break
    else:
        raise ValueError(f"{labels.shape[0]} rows cannot be spread over {n_clients} clients with {LEAST_ROWS} each")
    training, judging = {}, {}
    for g, part in enumerate(parts):
        order = random.permutation(part)
        kept = max(1, round(0.2 * order.shape[0]))
        name = f"client-{g:03d}"
        judging[name] = (features[order[:kept]], labels[order[:kept]])
        training[name] = (features[order[kept:]], labels[order[kept:]])
    return Clients(training, judging)


def _spread(labels: FloatArray, random: np.random.Generator, n_clients: int, concentration: float) -> list[FloatArray]:
    parts: list[list[FloatArray]] = [[] for _ in range(n_clients)]
    for label in np.unique(labels):
        own = random.permutation(np.flatnonzero(labels == label))
        shares = random.dirichlet(np.full(n_clients, concentration))
        cuts = np.floor(np.cumsum(shares)[:-1] * own.shape[0]).astype(int)
        for part, piece in zip(parts, np.split(own, cuts), strict=True):
            part.append(piece)
    return [np.concatenate(part) for part in parts]
