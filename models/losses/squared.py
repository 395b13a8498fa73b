"""Squared loss, of least squares: for training without a ball, since no slope bounds it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.basics import FloatArray
from models.losses.base import Line, Task


@dataclass(frozen=True)
class Squared:
    """``L(z) = z^2`` of the residual z. Its Lipschitz constant is infinite: over a ball its worst case is, too."""

    name: ClassVar[str] = "squared"
    task: ClassVar[Task] = "regression"
    lipschitz: ClassVar[float] = math.inf
    smooth: ClassVar[bool] = True
    lines: ClassVar[tuple[Line, ...] | None] = None

    def value(self, z: FloatArray) -> FloatArray:
        """``z^2``."""
        return np.square(z)

    def slope(self, z: FloatArray) -> FloatArray:
        """``2 z``."""
        return np.asarray(2.0 * z)
