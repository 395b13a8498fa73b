"""Smooth hinge loss: the hinge with its corner rounded by a parabola."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.basics import FloatArray
from models.losses.base import Line, Task


@dataclass(frozen=True)
class SmoothHinge:
    """``L(z) = 1/2 - z`` for z <= 0, ``(1 - z)^2 / 2`` between, 0 for z >= 1, z the margin (DRFL section 3)."""

    name: ClassVar[str] = "smooth_hinge"
    task: ClassVar[Task] = "classification"
    lipschitz: ClassVar[float] = 1.0
    smooth: ClassVar[bool] = True
    lines: ClassVar[tuple[Line, ...] | None] = None

    def value(self, z: FloatArray) -> FloatArray:
        """With ``short = max(0, 1 - z)``: ``short^2 / 2`` up to 1, then ``short - 1/2``."""
        short = np.maximum(0.0, 1.0 - z)
        return np.where(short <= 1.0, 0.5 * np.square(np.minimum(short, 1.0)), short - 0.5)

    def slope(self, z: FloatArray) -> FloatArray:
        """``-min(1, max(0, 1 - z))``."""
        return np.asarray(-np.clip(1.0 - z, 0.0, 1.0))
