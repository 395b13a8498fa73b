"""The six losses as their definitions say them, written once more for the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CLASSIFICATION = ("hinge", "smooth_hinge", "logistic")
REGRESSION = ("huber", "epsilon_insensitive", "pinball")


@dataclass(frozen=True)
class OracleLoss:
    """A convex loss of one number z: the margin y (<w, x> + b), or the residual <w, x> + b - y.

    ``parameter`` is epsilon of huber and epsilon_insensitive and the quantile of pinball.
    """

    name: str
    parameter: float = 0.0

    @property
    def regression(self) -> bool:
        """Whether z is a residual."""
        return self.name in REGRESSION

    @property
    def rates(self) -> tuple[float, float]:
        """By how much the loss grows for a unit of z, far out to the left and to the right."""
        if self.name == "huber":
            return self.parameter, self.parameter
        if self.name == "epsilon_insensitive":
            return 1.0, 1.0
        return (self.parameter, 1.0 - self.parameter) if self.name == "pinball" else (1.0, 0.0)

    @property
    def steepest(self) -> float:
        """Least Lipschitz constant."""
        return max(self.rates)

    @property
    def lines(self) -> list[tuple[float, float]]:
        """(slope, height) of the lines whose maximum the loss is; empty where it bends."""
        e = self.parameter
        known = {
            "hinge": [(0.0, 0.0), (-1.0, 1.0)],
            "epsilon_insensitive": [(0.0, 0.0), (1.0, -e), (-1.0, -e)],
            "pinball": [(-e, 0.0), (1.0 - e, 0.0)],
        }
        return known.get(self.name, [])

    def value(self, z: Any) -> Array:
        """L(z), elementwise."""
        z, e = np.asarray(z, dtype=np.float64), self.parameter
        if self.name == "logistic":
            return np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))
        if self.name == "smooth_hinge":
            return np.where(z <= 0, 0.5 - z, np.where(z < 1, 0.5 * np.clip(1 - z, 0, 1) ** 2, 0.0))
        if self.name == "huber":
            return np.where(np.abs(z) <= e, 0.5 * np.minimum(np.abs(z), e) ** 2, e * (np.abs(z) - 0.5 * e))
        return np.max([slope * z + height for slope, height in self.lines], axis=0)

    def slope(self, z: Any) -> Array:
        """A subgradient of L at z, elementwise."""
        z, e = np.asarray(z, dtype=np.float64), self.parameter
        if self.name == "logistic":
            small = np.exp(-np.abs(z))
            return np.where(z > 0, -small, -1.0) / (1.0 + small)
        if self.name == "smooth_hinge":
            return -np.clip(1.0 - z, 0.0, 1.0)
        if self.name == "huber":
            return np.clip(z, -e, e)
        slopes, heights = np.array(self.lines).T
        return slopes[np.argmax(np.multiply.outer(slopes, z).T + heights, axis=-1)].T
