"""Adult as two clients, doctorate and non-doctorate, with the categorical features only (as Mohri et al. 2019 have it).

The eight text columns are spelled out as one column a category, a missing cell being a category of its own; the label
is +1 for an income above 50K.
"""

from __future__ import annotations

import csv

import numpy as np

from models.methods.local_sgd.objectives.base import Rows
from tests.benchmarks.data import table_path

TEXT = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country")
CLIENTS = ("doctorate", "non-doctorate")


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
