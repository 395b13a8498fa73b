"""Hinge loss, of the support vector machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.basics import FloatArray
from models.losses.base import Line, Task


@dataclass(frozen=True)
class Hinge:
    """``L(z) = max(0, 1 - z)`` of the margin z (DRFL section 3)."""

    name: ClassVar[str] = "hinge"
    task: ClassVar[Task] = "classification"
    lipschitz: ClassVar[float] = 1.0
    smooth: ClassVar[bool] = False
    lines: ClassVar[tuple[Line, ...] | None] = (Line(0.0, 0.0), Line(-1.0, 1.0))

    def value(self, z: FloatArray) -> FloatArray:
        """``max(0, 1 - z)``."""
        return np.maximum(0.0, 1.0 - z)

    def slope(self, z: FloatArray) -> FloatArray:
        """-1 below 1, else 0."""
        return np.where(z < 1.0, -1.0, 0.0)
