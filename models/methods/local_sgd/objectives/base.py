"""What a model must offer to be trained by local gradient steps: its mean loss over rows and the gradient of that."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from models.basics import FloatArray


class Objective(Protocol):
    """Mean loss of a model with a flat parameter vector (D,), over rows (N, P) with labels or targets (N,)."""

    @property
    def smooth(self) -> bool:
        """Whether the gradient is continuous in the parameters (almost everywhere, for a network)."""
        ...

    @property
    def convex(self) -> bool:
        """Whether the mean loss is convex, so that loss and gradient at a point are a cut of it."""
        ...

    def size(self, n_features: int) -> int:
        """D for rows of ``n_features`` features."""
        ...

    def start(self, n_features: int, seed: int) -> FloatArray:
        """Parameters (D,) to start from."""
        ...

    def loss(self, weights: FloatArray, features: FloatArray, labels: FloatArray) -> float:
        """Mean loss."""
        ...

    def loss_and_gradient(
        self,
        weights: FloatArray,
        features: FloatArray,
        labels: FloatArray,
        random: np.random.Generator | None = None,
    ) -> tuple[float, FloatArray]:
        """Mean loss and its gradient (D,); ``random`` draws what a step of training draws (dropout), None: nothing."""
        ...
