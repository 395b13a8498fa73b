"""What a race knows of all heads of one lift with one fold held out: of each by itself, or of all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.tuning.candidates import Candidate
from models.tuning.class_squares import ClassSquares
from models.tuning.least_squares import LeastSquares
from models.tuning.shared_cuts import SharedCuts
from models.tuning.terms import Step, TuningTerms

_WIDE = 0.5  # gap at which where the model points says more of classes than the best point that was asked


@dataclass(frozen=True)
class HeadPools:
    """One pool for each of K heads; ``has_target``: a score is of the best point known, whatever its gap."""

    pools: Sequence[SharedCuts | LeastSquares]
    has_target: bool

    @property
    def dimension(self) -> int:
        """Length of a point."""
        return self.pools[0].dimension

    def asked(self, candidate: Candidate) -> int:
        """How often a candidate was asked, of every head alike."""
        return self.pools[0].asked(candidate)

    def add(self, candidate: Candidate, points: FloatArray, answers: Mapping[str, Arrays]) -> None:
        """Take in what all sites answered for a candidate at points (K, D); arrays of all heads."""
        for head, pool in enumerate(self.pools):
            of_head = {site: {name: array[head] for name, array in each.items()} for site, each in answers.items()}
            pool.add(candidate, points[head], of_head)

    def step(self, candidate: Candidate) -> Step:
        """Points (K, D) to ask next, the best known, and the widest gap."""
        steps = [pool.step(candidate) for pool in self.pools]
        return Step(
            np.stack([step.point for step in steps]), np.stack([step.best for step in steps]),
            max(step.gap for step in steps),
        )

    def scored(self, candidate: Candidate) -> tuple[FloatArray, float]:
        """Weights (K, D) to score a candidate by, and the widest gap of their bounds."""
        steps = [pool.step(candidate) for pool in self.pools]
        gap = max(step.gap for step in steps)
        points = [step.point if step.gap > _WIDE and not self.has_target else step.best for step in steps]
        return np.stack(points), gap


def new_pool(terms: TuningTerms, n_features: int, heads: int, *, squares: bool) -> HeadPools | ClassSquares:
    """Nothing known of all heads of a lift with a fold held out; ``squares``: the race goes by them."""
    has_target = terms.loss.task == "regression"
    if squares and not has_target:
        return ClassSquares(terms, n_features, heads)
    kind = LeastSquares if squares else SharedCuts
    return HeadPools([kind(terms, n_features) for _ in range(heads)], has_target)
