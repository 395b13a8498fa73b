"""Huber loss: squared near zero, absolute far out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.basics import FloatArray, ProblemError
from models.losses.base import Line, Task


@dataclass(frozen=True)
class Huber:
    """``z^2 / 2`` for ``|z| <= epsilon``, ``epsilon (|z| - epsilon / 2)`` beyond, z the residual (DRFL section 3)."""

    epsilon: float = 1.35
    name: ClassVar[str] = "huber"
    task: ClassVar[Task] = "regression"
    smooth: ClassVar[bool] = True
    lines: ClassVar[tuple[Line, ...] | None] = None

    def __post_init__(self) -> None:
        """Refuse a threshold that is none."""
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise ProblemError(f"epsilon of the huber loss must be a finite number above 0, got {self.epsilon}")

    @property
    def lipschitz(self) -> float:
        """``epsilon``."""
        return self.epsilon

    def value(self, z: FloatArray) -> FloatArray:
        """With ``near = min(|z|, epsilon)``: ``near (|z| - near / 2)``."""
        size = np.abs(z)
        near = np.minimum(size, self.epsilon)
        return np.asarray(near * (size - 0.5 * near))

    def slope(self, z: FloatArray) -> FloatArray:
        """z, clipped to ``[-epsilon, epsilon]``."""
        return np.clip(z, -self.epsilon, self.epsilon)
