r"""Local mixup, which happens in the vault: local steps on mixtures of two rows of the same site (DRFLM section 2.2).

    x~ = gamma x_j + (1 - gamma) x_k,      the pair (j, k) drawn from the site's own rows

gamma is drawn from Beta(``mixup_alpha``, ``mixup_beta``), or is ``mixup_ratio`` where that is above 0 (1: no mixing,
which is DRFA; 0.5 with both labels alike is the mixture of the paper's Example 1). How the labels mix:

- regression: the target is gamma y_j + (1 - gamma) y_k;
- graphs: their embeddings are mixed, not the graphs (:class:`~.objectives.graphs.objective.GraphObjective`);
- classification: the loss is ``gamma L(x~, y_j) + (1 - gamma) L(x~, y_k)``. For a network with softmax that is the
  cross-entropy against the mixed label; for a margin loss it is what a label y~ between -1 and 1 has to mean, a row
  that is +1 with the probability (1 + y~) / 2; the margin y~ s itself says nothing of the score s where y~ is 0.

A step draws one gamma for its batch and one partner for each of its rows, out of all rows of the site. Mixed rows,
ratios and pairs never leave; what leaves is one scalar more than without mixup, the mean mixed loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.methods.local_sgd.objectives.base import MeanLoss, Rows
from models.methods.local_sgd.site import LocalStepsSite
from models.problem import SiteProblem

_RATIOS = 8
"""How many ratios the mean mixed loss is taken over where they are drawn."""


@dataclass(frozen=True, eq=False)
class MixupObjective(MeanLoss):
    """Another objective, with mixed rows wherever something is drawn; exact where nothing is.

    ``partners``: all rows of the site, features (N, P) and labels (N,). ``ratio`` 0: drawn from Beta(alpha, beta).
    """

    model: MeanLoss
    partners: Rows
    alpha: float
    beta: float
    ratio: float = 0.0

    def loss_and_gradient(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean loss and gradient (D,): of the rows as they are, or with ``random`` of these mixed with others."""
        if random is None:
            return self.model.loss_and_gradient(weights, features, labels)
        return self._mixed(weights, features, labels, random, random)

    def loss(self, weights: FloatArray, features: FloatArray, labels: FloatArray) -> float:
        """Mean loss of the rows as they are."""
        return self.model.loss(weights, features, labels)

    def mixed_loss(self, weights: FloatArray, random: np.random.Generator, share: float = 1.0) -> float:
        """Mean loss over a share of the site's rows, each mixed with a partner; over 8 ratios where they are drawn."""
        features, labels = self.partners
        count = max(1, round(share * labels.shape[0]))
        parts = np.array_split(random.permutation(labels.shape[0])[:count], 1 if self.ratio > 0 else _RATIOS)
        total = 0.0
        for part in parts:
            if part.shape[0]:
                total += self._mixed(weights, features[part], labels[part], random, None)[0] * part.shape[0]
        return float(total / count)

    def _partners(self, count: int, random: np.random.Generator) -> tuple[float, Rows]:
        """Ratio, and the partners of ``count`` rows."""
        ratio = self.ratio or float(random.beta(self.alpha, self.beta))
        chosen = random.integers(self.partners[1].shape[0], size=count)
        return ratio, (self.partners[0][chosen], self.partners[1][chosen])

    def _mixed(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, mixing: np.random.Generator,
        dropping: np.random.Generator | None,
    ) -> tuple[float, FloatArray]:
        """Mean loss and gradient of mixed rows: ``mixing`` draws the partners, ``dropping`` what the model draws."""
        ratio, others = self._partners(labels.shape[0], mixing)
        return self.model.mixed_loss_and_gradient(weights, (features, labels), others, ratio, dropping)


@dataclass(frozen=True)
class MixupSite(LocalStepsSite):
    """Site half of DRFLM. Message as for :class:`LocalStepsSite`; the answer has ``mixed_risk`` () besides.

    ``risk`` and ``slope`` are those of the rows as they are; ``mixed_risk`` is the mean loss of mixed rows there,
    of as many as a batch has where steps are asked for too, else of as many as the site has.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact loss and gradient at the point, a mean mixed loss there, and where steps on mixed rows end."""
        numbers = (parameters[name] for name in ("mixup_alpha", "mixup_beta", "mixup_ratio"))
        objective = MixupObjective(self.descended(problem), (problem.features, problem.labels), *numbers)
        answer = LocalStepsSite(objective, tells_cut=self.tells_cut).answer(problem, message, parameters)
        random = np.random.default_rng([int(message["draw"]), 1])
        least = parameters.get("least_rows", 1.0) / problem.labels.shape[0]
        share = min(1.0, max(parameters["batch"], least)) if message["step_size"] > 0 else 1.0
        return {**answer, "mixed_risk": np.array(objective.mixed_loss(message["point"], random, share))}

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {**super().shapes(dimension), "mixed_risk": ()}
