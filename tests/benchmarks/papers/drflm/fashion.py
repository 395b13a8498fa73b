"""Fashion-MNIST as three clients of one class each: t-shirt/top, pullover, shirt (as Mohri et al. 2019 have it)."""

from __future__ import annotations

import numpy as np

from models.methods.local_sgd.objectives.base import Rows
from tests.benchmarks.images import load_images

CLASSES = {"t-shirt/top": 0, "pullover": 2, "shirt": 6}


def load_fashion() -> dict[str, Rows]:
    """Training images of the three classes by client: pixels (N, 784) in [0, 1], class indices 0, 1, 2.

    Raises
    ------
    MissingDataError
        The images are not there.
    """
    features, labels = load_images("fashion_mnist")
    return {
        name: (features[labels == code], np.full(int((labels == code).sum()), float(index)))
        for index, (name, code) in enumerate(CLASSES.items())
    }
