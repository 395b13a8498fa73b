r"""A loss that weighs what is high more: the smooth maximum of the rows' losses, for a Kullback-Leibler ball.

    f(w) = mu log mean_i exp(l_i(w) / mu)          over the rows of a site,     or f(w) = mean_i l_i(w)

The first is convex where the l_i are, lies between the mean and the largest of them, and is the worst mean over
distributions q of the rows, less mu times their divergence from the even one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.methods.local_sgd.objectives.base import MeanLoss
from models.methods.local_sgd.objectives.linear import LinearObjective


@dataclass(frozen=True, eq=False)
class TiltedObjective(MeanLoss):
    """Loss and gradient of f where nothing is drawn; with draws, those of compositional steps.

    Such a step's gradient is ``mean_i exp((l_i - inner) / mu) grad l_i`` over the batch, or with ``over_rows`` False
    ``exp((mean_i l_i - inner) / mu)`` times the gradient of the mean; ``inner`` is mu log y, y the tracked inner value.
    ``share`` a is the weight of these rows in y: y is at least a times their own inner value, so where the tracked one
    is below that of the batch, the latter stands in, and no step is steeper than 1/a gradients.
    """

    model: MeanLoss
    mu: float
    inner: float
    share: float = 1.0
    over_rows: bool = True

    def loss_and_gradient(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """The loss f with its gradient (D,), or with ``random`` the gradient of a step."""
        if not (self.over_rows and isinstance(self.model, LinearObjective)):
            loss, gradient = self.model.loss_and_gradient(weights, features, labels, random)
            return loss, gradient if random is None else gradient * np.exp((loss - self._inner(loss)) / self.mu)
        losses, slopes = self.model.row_losses(weights, features, labels)
        highest = float(losses.max())
        lifted = np.exp((losses - highest) / self.mu)
        tilted = highest + self.mu * math.log(float(lifted.mean()))
        against = tilted if random is None else self._inner(tilted)
        counts = lifted * math.exp((highest - against) / self.mu) / losses.shape[0]
        return tilted, self.model.gradient(slopes * counts, features)

    def _inner(self, own: float) -> float:
        return max(self.inner, own + self.mu * math.log(self.share))
