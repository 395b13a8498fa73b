"""Folds over the rows of clients, with flipped training labels; the same for every data set of Table 2.

In four folds every row of a client is tested once, by a model that has not seen it; of the other rows a fifth validates
and the rest trains. With flips, each training label is turned with the given probability, into another of the classes;
validation and test labels are never turned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from models.methods.local_sgd.objectives.base import Rows

FOLDS = 4


@dataclass(frozen=True)
class ClientSplit:
    """Rows of each client, by client: features (N, P) and labels (N,)."""

    train: Mapping[str, Rows]
    validation: Mapping[str, Rows]
    test: Mapping[str, Rows]


def folds(
    clients: Mapping[str, Rows], seed: int, flip: float = 0.0, *, most: int | None = None, n_classes: int = 2
) -> Iterator[ClientSplit]:
    """The four splits of a seed; ``most``: no more rows of a client than that, drawn anew for each seed.

    Labels are -1 and +1 where there are two classes, else class indices.
    """
    random = np.random.default_rng([seed, 17])
    orders = {name: random.permutation(labels.shape[0])[:most] for name, (_, labels) in clients.items()}
    for fold in range(FOLDS):
        parts: tuple[dict[str, Rows], ...] = ({}, {}, {})
        for name, (features, labels) in clients.items():
            order, place = orders[name], np.arange(orders[name].shape[0])
            tested = place % FOLDS == fold
            validating = ~tested & (place // FOLDS % 5 == 0)
            training = order[~tested & ~validating]
            turned = random.random(training.shape[0]) < flip
            others = -labels[training]
            if n_classes > 2:
                others = (labels[training] + random.integers(1, n_classes, training.shape[0])) % n_classes
            parts[0][name] = (features[training], np.where(turned, others, labels[training]))
            parts[1][name] = (features[order[validating]], labels[order[validating]])
            parts[2][name] = (features[order[tested]], labels[order[tested]])
        yield ClientSplit(*parts)
