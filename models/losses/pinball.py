"""Pinball loss, of quantile regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.basics import FloatArray, ProblemError
from models.losses.base import Line, Task


@dataclass(frozen=True)
class Pinball:
    """``L(z) = max(-quantile z, (1 - quantile) z)`` of the residual ``z = prediction - target`` (DRFL section 3).

    Its least mean is at the quantile: the target lies below the prediction with probability ``quantile``.
    """

    quantile: float = 0.5
    name: ClassVar[str] = "pinball"
    task: ClassVar[Task] = "regression"
    smooth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a quantile outside (0, 1)."""
        if not 0.0 < self.quantile < 1.0:
            raise ProblemError(
                f"quantile of the pinball loss must lie between 0 and 1, both excluded, got {self.quantile}"
            )

    @property
    def lipschitz(self) -> float:
        """The larger of ``quantile`` and ``1 - quantile``."""
        return max(self.quantile, 1.0 - self.quantile)

    @property
    def lines(self) -> tuple[Line, ...] | None:
        """``-quantile z`` and ``(1 - quantile) z``."""
        return (Line(-self.quantile, 0.0), Line(1.0 - self.quantile, 0.0))

    def value(self, z: FloatArray) -> FloatArray:
        """``max(-quantile z, (1 - quantile) z)``."""
        return np.maximum(-self.quantile * z, (1.0 - self.quantile) * z)

    def slope(self, z: FloatArray) -> FloatArray:
        """``-quantile`` below 0, ``1 - quantile`` above, 0 at 0."""
        return np.where(z < 0.0, -self.quantile, np.where(z > 0.0, 1.0 - self.quantile, 0.0))
