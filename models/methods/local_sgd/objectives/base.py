"""What a model must offer to be trained by local gradient steps: its mean loss over rows and the gradient of that."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from models.basics import FloatArray

Rows = tuple[FloatArray, FloatArray]


class MeanLoss(ABC):
    """Mean loss of a model with a flat parameter vector (D,), over rows (N, P) with labels or targets (N,)."""

    @abstractmethod
    def loss_and_gradient(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean loss and its gradient (D,); ``random`` draws what a step of training draws (dropout), None: nothing."""

    def mixed_loss_and_gradient(
        self, weights: FloatArray, rows: Rows, others: Rows, ratio: float, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean loss and gradient (D,) of rows mixed with others, ``ratio x_i + (1 - ratio) x'_i`` (local mixup).

        ``ratio L(., y_i) + (1 - ratio) L(., y'_i)`` of classes, whose labels do not mix; a model of a target mixes the
        targets, and a model with an embedding mixes that.
        """
        mixed = ratio * rows[0] + (1 - ratio) * others[0]
        own, own_gradient = self.loss_and_gradient(weights, mixed, rows[1], random)
        other, other_gradient = self.loss_and_gradient(weights, mixed, others[1], random)
        return ratio * own + (1 - ratio) * other, ratio * own_gradient + (1 - ratio) * other_gradient

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
