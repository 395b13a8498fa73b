r"""Ambiguity over the plants: which mixture of the sites' risks is the worst one that must be reckoned with.

    Q = { q in the simplex : ||q - q0||_p <= radius },      p in {1, 2, inf}      (DRFL Theorem 4.3)

radius 0 is fixed weights q0; a radius of 2 or more is the whole simplex, the worst plant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from models.basics import ProblemError

MixtureNorm = Literal["l1", "l2", "linf"]


@dataclass(frozen=True)
class MixtureBall:
    """The ball around the site weights in which the true mixture is reckoned to lie; intersected with the simplex."""

    norm: MixtureNorm = "l2"
    radius: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a ball that is not one."""
        if self.norm not in get_args(MixtureNorm):
            known = ", ".join(get_args(MixtureNorm))
            raise ProblemError(f"the norm over the sites must be one of {known}, got {self.norm!r}")
        if not (math.isfinite(self.radius) and self.radius >= 0):
            raise ProblemError(f"the radius over the sites must be a finite number at or above 0, got {self.radius}")
