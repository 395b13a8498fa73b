"""Two-layer network with ReLU units, dropout and a softmax over classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError
from models.methods.local_sgd.objectives.base import Objective, Rows
from models.methods.local_sgd.objectives.lit_sets import lit_rows, shared_sets
from models.methods.local_sgd.objectives.softmax import classes, cross_entropy, mixed_cross_entropy

Layers = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
Judged = Callable[[FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True)
class NetworkObjective(Objective):
    r"""``mean_i -log softmax(V h_i + c)_{y_i}`` with ``h = relu(U x + b)``, labels class indices (RF appendix J.2).

    In a step of training each hidden unit of each row is dropped with probability ``dropout`` and the others are scaled
    by ``1 / (1 - dropout)``; losses are judged with all units. Parameters: U (hidden, P), b, V (n_classes, hidden), c.

    ``least_rows`` above 1: the gradient of each unit is that of one which is linear on a set of rows and 0 on the rest,
    and any two of these sets are equal or so many rows apart (:mod:`.lit_sets`); so a unit that fewer rows light has
    none. The slopes of a unit that one row lights are that row, but for a factor which the slope of the unit's bias
    tells, and so is the difference of two units with one row between them. The loss is the network's own.
    """

    n_classes: int
    hidden: int = 50
    dropout: float = 0.5
    smooth: bool = True
    least_rows: int = 1

    def __post_init__(self) -> None:
        """Refuse a network that is none."""
        if self.hidden < 1 or self.n_classes < 2:
            raise ProblemError(
                f"a network needs a hidden unit and two classes, got {self.hidden} units and {self.n_classes} classes"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise ProblemError(f"dropout must be at or above 0 and below 1, got {self.dropout}")

    def size(self, n_features: int) -> int:
        """Number of parameters."""
        return self.hidden * (n_features + 1) + self.n_classes * (self.hidden + 1)

    def start(self, n_features: int, seed: int) -> FloatArray:
        """Uniform within ``1/sqrt(inputs)`` of each layer."""
        random = np.random.default_rng(seed)
        first, second = 1.0 / np.sqrt(n_features), 1.0 / np.sqrt(self.hidden)
        split = self.hidden * (n_features + 1)
        return np.concatenate(
            [random.uniform(-first, first, split), random.uniform(-second, second, self.size(n_features) - split)]
        )

    def loss_and_gradient(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean cross-entropy and its gradient (D,), with units dropped where ``random`` is there to draw them."""
        def judged(scores: FloatArray) -> tuple[float, FloatArray]:
            return cross_entropy(scores, classes(labels, self.n_classes))

        return self._through(weights, features, judged, random)

    def mixed_loss_and_gradient(
        self, weights: FloatArray, rows: Rows, others: Rows, ratio: float, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """As :class:`~.base.MeanLoss` has it; where no unit is dropped, from one pass over the mixed rows."""
        if random is not None and self.dropout > 0:
            return super().mixed_loss_and_gradient(weights, rows, others, ratio, random)

        def judged(scores: FloatArray) -> tuple[float, FloatArray]:
            return mixed_cross_entropy(scores, rows[1], others[1], ratio, self.n_classes)

        return self._through(weights, ratio * rows[0] + (1 - ratio) * others[0], judged, None)

    def loss(self, weights: FloatArray, features: FloatArray, labels: FloatArray) -> float:
        """Mean cross-entropy with all units, without the gradient's pass over the rows."""
        return cross_entropy(self.scores(weights, features), classes(labels, self.n_classes))[0]

    def scores(self, weights: FloatArray, features: FloatArray) -> FloatArray:
        """Scores of the classes (N, n_classes), with all units."""
        inner, bias, outer, outer_bias = self.layers(weights, features.shape[1])
        return np.asarray(np.maximum(features @ inner.T + bias, 0.0) @ outer.T + outer_bias)

    def layers(self, weights: FloatArray, n_features: int) -> Layers:
        """U (hidden, P), b (hidden,), V (n_classes, hidden) and c (n_classes,) of the parameters (D,).

        :class:`ProblemError` where there are more or fewer.
        """
        if weights.shape != (self.size(n_features),):
            raise ProblemError(f"the network has {self.size(n_features)} parameters, got shape {weights.shape}")
        bias = self.hidden * n_features
        outer = bias + self.hidden
        last = outer + self.n_classes * self.hidden
        return (
            weights[:bias].reshape(self.hidden, n_features), weights[bias:outer],
            weights[outer:last].reshape(self.n_classes, self.hidden), weights[last:],
        )

    def _through(
        self, weights: FloatArray, features: FloatArray, judged: Judged, random: np.random.Generator | None
    ) -> tuple[float, FloatArray]:
        """Loss and gradient (D,), where scores (N, n_classes) are ``judged`` by a loss and its slopes in them."""
        inner, bias, outer, outer_bias = self.layers(weights, features.shape[1])
        inside = features @ inner.T + bias
        kept = np.ones_like(inside)
        if random is not None and self.dropout > 0:
            kept = (random.random(inside.shape) >= self.dropout) / (1.0 - self.dropout)
        loss, slopes = judged((np.maximum(inside, 0.0) * kept) @ outer.T + outer_bias)
        told = inside > 0 if self.least_rows <= 1 else shared_sets(lit_rows(features, inner, bias), self.least_rows)
        through = told * kept
        back, hidden = (slopes @ outer) * through, inside * through
        return loss, np.concatenate(
            [(back.T @ features).ravel(), back.sum(axis=0), (slopes.T @ hidden).ravel(), slopes.sum(axis=0)]
        )
