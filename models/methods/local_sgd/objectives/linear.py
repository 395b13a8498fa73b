"""Linear model under any loss of ``models.losses``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.losses.base import Loss
from models.methods.local_sgd.objectives.base import Objective, Rows


@dataclass(frozen=True)
class LinearObjective(Objective):
    r"""``mean_i L(z_i)``, z the margin ``y (<w, x> + b)`` or the residual ``<w, x> + b - y``, as the loss has it.

    The intercept b, where there is one, is the last weight.
    """

    loss_function: Loss
    fit_intercept: bool = True

    @property
    def smooth(self) -> bool:
        """Whether the loss is."""
        return self.loss_function.smooth

    def size(self, n_features: int) -> int:
        """One weight a feature, and the intercept."""
        return n_features + int(self.fit_intercept)

    def loss_and_gradient(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean loss and a subgradient (D,)."""
        losses, slopes = self.row_losses(weights, features, labels)
        count = losses.shape[0]
        return float(losses.sum()) / count, self.gradient(slopes, features) / count

    def mixed_loss_and_gradient(
        self, weights: FloatArray, rows: Rows, others: Rows, ratio: float, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean loss and subgradient (D,) of rows mixed with others; the targets of a regression are mixed too."""
        if self.loss_function.task == "classification":
            return super().mixed_loss_and_gradient(weights, rows, others, ratio, random)
        features, targets = (ratio * own + (1 - ratio) * other for own, other in zip(rows, others, strict=True))
        return self.loss_and_gradient(weights, features, targets, random)

    def row_losses(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Loss of each row and its slope in the row's score ``<w, x> + b``, each (N,)."""
        z = self._arguments(weights, features, labels)
        slopes = self.loss_function.slope(z)
        return self.loss_function.value(z), slopes * labels if self.loss_function.task == "classification" else slopes

    def gradient(self, slopes: FloatArray, features: FloatArray) -> FloatArray:
        """Sum of the rows' gradients (D,), from their slopes in the score (N,)."""
        gradient = slopes @ features
        return np.append(gradient, slopes.sum()) if self.fit_intercept else np.asarray(gradient)

    def _arguments(self, weights: FloatArray, features: FloatArray, labels: FloatArray) -> FloatArray:
        scores = features @ weights[: features.shape[1]]
        if self.fit_intercept:
            scores = scores + weights[-1]
        return np.asarray(labels * scores if self.loss_function.task == "classification" else scores - labels)
