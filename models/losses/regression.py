"""Losses of regression: Huber, epsilon-insensitive, pinball and squared, of the residual ``z = <w, x> + b - y``."""

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
