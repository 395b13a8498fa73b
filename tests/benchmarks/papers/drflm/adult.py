"""Adult as two clients, doctorate and non-doctorate, with the categorical features only (as Mohri et al. 2019 have it).

The eight text columns are spelled out as one column a category, a missing cell being a category of its own; the label
is +1 for an income above 50K. In four folds every row of a client is tested once, by a model that has not seen it; of
the other rows a fifth validates and the rest trains. With flips, each training label is turned with the given
probability; validation and test labels are never turned.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from models.problem import FloatArray
from tests.benchmarks.data import table_path

TEXT = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country")
CLIENTS = ("doctorate", "non-doctorate")
FOLDS = 4

Rows = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class ClientSplit:
    """Rows of each client, by client: features (N, P) and labels (N,)."""

    train: Mapping[str, Rows]
    validation: Mapping[str, Rows]
    test: Mapping[str, Rows]


def load_adult() -> dict[str, Rows]:
    """All rows by client, one-hot.

    Raises
    ------
    MissingDataError
        The table is not there.
    """
    with table_path("adult").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    columns = []
    for name in TEXT:
        values = np.array([line[name] for line in lines])
        columns += [values == each for each in np.unique(values)]
    features = np.array(columns, dtype=np.float64).T
    labels = np.array([1.0 if line["label"].startswith(">50K") else -1.0 for line in lines])
    doctor = np.array([line["education"] == "Doctorate" for line in lines])
    return {name: (features[own], labels[own]) for name, own in zip(CLIENTS, (doctor, ~doctor), strict=True)}


def folds(clients: Mapping[str, Rows], seed: int, flip: float = 0.0, most: int | None = None) -> Iterator[ClientSplit]:
    """The four splits of a seed; ``most``: no more rows of a client than that, drawn anew for each seed."""
    random = np.random.default_rng([seed, 17])
    orders = {name: random.permutation(labels.shape[0])[:most] for name, (_, labels) in clients.items()}
    for fold in range(FOLDS):
        parts: tuple[dict[str, Rows], ...] = ({}, {}, {})
        for name, (features, labels) in clients.items():
            order, place = orders[name], np.arange(orders[name].shape[0])
            tested = place % FOLDS == fold
            validating = ~tested & (place // FOLDS % 5 == 0)
            training = ~tested & ~validating
            signs = np.where(random.random(int(training.sum())) < flip, -1.0, 1.0)
            parts[0][name] = (features[order[training]], labels[order[training]] * signs)
            parts[1][name] = (features[order[validating]], labels[order[validating]])
            parts[2][name] = (features[order[tested]], labels[order[tested]])
        yield ClientSplit(*parts)


def correct(weights: FloatArray, rows: Rows) -> FloatArray:
    """Which rows a linear model, the intercept last, classifies correctly: 1 or 0 each, (N,)."""
    features, labels = rows
    return (np.where(features @ weights[:-1] + weights[-1] < 0, -1.0, 1.0) == labels).astype(np.float64)
