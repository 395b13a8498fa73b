"""Linear model with a softmax over classes: multinomial logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.methods.local_sgd.objectives.base import Objective, Rows


@dataclass(frozen=True)
class SoftmaxObjective(Objective):
    r"""``mean_i -log softmax(W x_i + b)_{y_i}``, labels y class indices 0 .. n_classes - 1.

    Parameters: W row by row, (n_classes, P), then b (n_classes,).
    """

    n_classes: int
    smooth: bool = True

    def size(self, n_features: int) -> int:
        """``n_classes (P + 1)``."""
        return self.n_classes * (n_features + 1)

    def loss_and_gradient(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean cross-entropy and its gradient (D,)."""
        loss, slopes = cross_entropy(self.scores(weights, features), classes(labels, self.n_classes))
        return loss, self._gradient(slopes, features)

    def mixed_loss_and_gradient(
        self, weights: FloatArray, rows: Rows, others: Rows, ratio: float, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """As :class:`~.base.MeanLoss` has it, from one pass over the mixed rows for both labels."""
        mixed = ratio * rows[0] + (1 - ratio) * others[0]
        loss, slopes = mixed_cross_entropy(self.scores(weights, mixed), rows[1], others[1], ratio, self.n_classes)
        return loss, self._gradient(slopes, mixed)

    def loss(self, weights: FloatArray, features: FloatArray, labels: FloatArray) -> float:
        """Mean cross-entropy, without the gradient's pass over the rows."""
        return cross_entropy(self.scores(weights, features), classes(labels, self.n_classes))[0]

    def row_slopes(self, weights: FloatArray, features: FloatArray, labels: FloatArray) -> FloatArray:
        """Slope of each row's loss in its scores (N, n_classes): the rows' coefficients in the sums of the gradient."""
        scores = self.scores(weights, features)
        return np.asarray(cross_entropy(scores, classes(labels, self.n_classes))[1] * labels.shape[0])

    def planes(self, weights: FloatArray, n_features: int) -> FloatArray:
        """The parameters (D,) as planes (n_classes, P + 1), the intercept last."""
        split = self.n_classes * n_features
        return np.hstack([weights[:split].reshape(self.n_classes, n_features), weights[split:, None]])

    def scores(self, weights: FloatArray, features: FloatArray) -> FloatArray:
        """Scores of the classes (N, n_classes).

        :class:`ProblemError` where the parameters are more or fewer than its own.
        """
        if weights.shape != (self.size(features.shape[1]),):
            size = self.size(features.shape[1])
            raise ProblemError(f"the softmax regression has {size} parameters, got shape {weights.shape}")
        split = self.n_classes * features.shape[1]
        return np.asarray(features @ weights[:split].reshape(self.n_classes, -1).T + weights[split:])

    def _gradient(self, slopes: FloatArray, features: FloatArray) -> FloatArray:
        return np.concatenate([(slopes.T @ features).ravel(), slopes.sum(axis=0)])


def classes(labels: FloatArray, n_classes: int) -> NDArray[np.intp]:
    """Labels as indices; ``ProblemError`` for a label that is no index of a class."""
    indices = labels.astype(np.intp)
    if not ((indices == labels) & (indices >= 0) & (indices < n_classes)).all():
        raise ProblemError(f"labels must be class indices from 0 to {n_classes - 1}")
    return indices


def cross_entropy(scores: FloatArray, labels: NDArray[np.intp]) -> tuple[float, FloatArray]:
    """Mean ``-log softmax(scores)_y`` without overflow, and its slopes in the scores (N, n_classes)."""
    rows = np.arange(labels.shape[0])
    shifted = scores - scores.max(axis=1, keepdims=True)
    slopes = np.exp(shifted)
    totals = slopes.sum(axis=1)
    loss = float((np.log(totals) - shifted[rows, labels]).mean())
    slopes /= totals[:, None]
    slopes[rows, labels] -= 1.0
    slopes /= labels.shape[0]
    return loss, slopes


def mixed_cross_entropy(
    scores: FloatArray, labels: FloatArray, others: FloatArray, ratio: float, n_classes: int
) -> tuple[float, FloatArray]:
    """``ratio`` of the cross-entropy at labels (N,) and the rest of that at others (N,), with its slopes in scores."""
    own, own_slopes = cross_entropy(scores, classes(labels, n_classes))
    other, other_slopes = cross_entropy(scores, classes(others, n_classes))
    return ratio * own + (1 - ratio) * other, ratio * own_slopes + (1 - ratio) * other_slopes
