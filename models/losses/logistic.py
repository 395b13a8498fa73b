"""Logistic loss, of logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from models.basics import FloatArray
from models.losses.base import Line, Task


@dataclass(frozen=True)
class Logistic:
    """``L(z) = log(1 + exp(-z))`` of the margin z (DRFL section 3)."""

    name: ClassVar[str] = "logistic"
    task: ClassVar[Task] = "classification"
    lipschitz: ClassVar[float] = 1.0
    smooth: ClassVar[bool] = True
    lines: ClassVar[tuple[Line, ...] | None] = None

    def value(self, z: FloatArray) -> FloatArray:
        """``log(1 + exp(-z))`` without overflow."""
        return np.asarray(np.logaddexp(0.0, -z))

    def slope(self, z: FloatArray) -> FloatArray:
        """``-1 / (1 + exp(z))``."""
        return np.asarray(-expit(-z))
