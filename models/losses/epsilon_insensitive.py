"""Epsilon-insensitive loss, of support vector regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.basics import FloatArray, ProblemError
from models.losses.base import Line, Task


@dataclass(frozen=True)
class EpsilonInsensitive:
    """``L(z) = max(0, |z| - epsilon)`` of the residual z (DRFL section 3)."""

    epsilon: float = 0.1
    name: ClassVar[str] = "epsilon_insensitive"
    task: ClassVar[Task] = "regression"
    lipschitz: ClassVar[float] = 1.0
    smooth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a tolerance that is none."""
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ProblemError(
                f"epsilon of the epsilon_insensitive loss must be a finite number at or above 0, got {self.epsilon}"
            )

    @property
    def lines(self) -> tuple[Line, ...] | None:
        """0, ``z - epsilon`` and ``-z - epsilon``."""
        return (Line(0.0, 0.0), Line(1.0, -self.epsilon), Line(-1.0, -self.epsilon))

    def value(self, z: FloatArray) -> FloatArray:
        """``max(0, |z| - epsilon)``."""
        return np.maximum(0.0, np.abs(z) - self.epsilon)

    def slope(self, z: FloatArray) -> FloatArray:
        """The sign of z beyond epsilon, else 0."""
        return np.where(np.abs(z) > self.epsilon, np.sign(z), 0.0)
