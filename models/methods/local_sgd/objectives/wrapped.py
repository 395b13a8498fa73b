"""An objective around another: what it leaves as it is."""

from __future__ import annotations

from dataclasses import dataclass

from models.basics import FloatArray
from models.methods.local_sgd.objectives.base import Objective


@dataclass(frozen=True, eq=False)
class WrappedObjective:
    """Shape, start and kind of ``model``; what derives from it says what becomes of the loss."""

    model: Objective

    @property
    def smooth(self) -> bool:
        """As the model."""
        return self.model.smooth

    @property
    def convex(self) -> bool:
        """As the model."""
        return self.model.convex

    def size(self, n_features: int) -> int:
        """As the model."""
        return self.model.size(n_features)

    def start(self, n_features: int, seed: int) -> FloatArray:
        """As the model."""
        return self.model.start(n_features, seed)
