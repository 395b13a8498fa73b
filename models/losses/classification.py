"""Losses of classification: hinge, smooth hinge and logistic, of the margin ``z = y (<w, x> + b)``; cross-entropy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.basics import FloatArray, ProblemError
from models.losses.base import Line, Task
from models.losses.exponentials import logistic


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
        return np.asarray(-logistic(-z))


@dataclass(frozen=True)
class CrossEntropy:
    """``-log softmax(s)_y`` of the scores s of all classes; ``models.methods.local_sgd.objectives`` evaluate it.

    It is no function of one margin, so it has neither a value nor a slope here. Its Lipschitz constant is given as
    infinite: no worst case over a ball is known here, whatever gives the scores.
    """

    name: ClassVar[str] = "cross_entropy"
    task: ClassVar[Task] = "classification"
    lipschitz: ClassVar[float] = math.inf
    smooth: ClassVar[bool] = True
    lines: ClassVar[tuple[Line, ...] | None] = None

    def value(self, z: FloatArray) -> FloatArray:
        """``ProblemError``: one margin does not say it."""
        raise ProblemError("cross_entropy is a loss of the scores of all classes, not of one margin")

    def slope(self, z: FloatArray) -> FloatArray:
        """``ProblemError``: one margin does not say it."""
        raise ProblemError("cross_entropy is a loss of the scores of all classes, not of one margin")
