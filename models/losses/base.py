r"""What a loss is: a convex function of one number, at or above 0, as steep as its Lipschitz constant in the limit.

The number is the margin ``z = y (<w, x> + b)`` for classification (DRFL section B.3) and the residual
``z = <w, x> + b - y`` for regression (section B.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from models.basics import FloatArray

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class Line:
    """One piece ``slope z + height`` of a piecewise linear loss."""

    slope: float
    height: float


class Loss(Protocol):
    """A convex loss ``L(z) >= 0``; equal losses are equal objects."""

    def __hash__(self) -> int:
        """One for equal losses."""

    @property
    def name(self) -> str:
        """Name in ``models.losses.catalogue``."""

    @property
    def task(self) -> Task:
        """What z is."""

    @property
    def lipschitz(self) -> float:
        """Least c with ``|L(z) - L(z')| <= c |z - z'|``; the slope of L far out, on its steeper side."""

    @property
    def smooth(self) -> bool:
        """Whether the derivative is continuous."""

    @property
    def lines(self) -> tuple[Line, ...] | None:
        """Pieces whose maximum the loss is; None where it bends."""

    def value(self, z: FloatArray) -> FloatArray:
        """``L(z)``, elementwise."""

    def slope(self, z: FloatArray) -> FloatArray:
        """A subgradient ``L'(z)``, elementwise; the derivative where there is one."""
