"""What a model must offer to be trained by local gradient steps: its mean loss over rows and the gradient of that."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from models.basics import FloatArray


class MeanLoss(ABC):
    """Mean loss of a model with a flat parameter vector (D,), over rows (N, P) with labels or targets (N,)."""

    @abstractmethod
    def loss_and_gradient(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean loss and its gradient (D,); ``random`` draws what a step of training draws (dropout), None: nothing."""

    def loss(self, weights: FloatArray, features: FloatArray, labels: FloatArray) -> float:
        """Mean loss where nothing is drawn."""
        return self.loss_and_gradient(weights, features, labels)[0]


class Objective(MeanLoss):
    """A model's own loss, which says what the model needs to begin."""

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Whether the gradient is continuous in the parameters (almost everywhere, for a network)."""

    @abstractmethod
    def size(self, n_features: int) -> int:
        """D for rows of ``n_features`` features."""

    def start(self, n_features: int, seed: int) -> FloatArray:
        """Parameters (D,) to start from: zero where a model has no need of another."""
        return np.zeros(self.size(n_features))
