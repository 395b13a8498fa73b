r"""The prox step stated for the solvers: completed square, sums instead of means, rows that may be a part of all.

    min_{w, lam >= ||w_features||_*}  constant + price * lam + <linear, w> + stiffness / 2 ||w - anchor||^2
                                      + sum_i max(0, 1 - m_i, 1 + m_i - flip * lam),      m_i = <w, row_i>

Everything is N times the objective of the client step, so that a row's dual weights sum to one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from models.basics import FloatArray, TransportNorm

_LEAST_OBJECTIVE = 1e-3  # a row: below it the gap counts by its distance


@dataclass(frozen=True)
class Statement:
    """A prox problem over the rows given.

    rows : (n, D) signed rows ``y_i (x_i, 1)``, D = P or P + 1 (intercept last), C-contiguous.
    linear, anchor : (D,). ``flip`` is the label flip cost; infinity leaves the flip piece out.
    ``constant``, ``linear`` and ``price`` hold what the rows that are not here contribute: rows known to lie in one
    piece are linear there. ``price`` without them is N times the radius. ``total`` is N.
    """

    rows: FloatArray
    n_features: int
    linear: FloatArray
    constant: float
    anchor: FloatArray
    price: float
    flip: float
    stiffness: float
    norm: TransportNorm
    total: int

    @cached_property
    def can_flip(self) -> bool:
        """Whether the flip piece is there at all."""
        return math.isfinite(self.flip)

    @cached_property
    def is_robust(self) -> bool:
        """Whether there is a transport multiplier; without it the problem is a plain support vector machine."""
        return self.price > 0.0 or self.can_flip

    def allowed_gap(self, objective: float, tolerance: float) -> float:
        """Duality gap that counts as none: relative to the objective, or to a thousandth a row where that is more."""
        return tolerance * max(abs(objective), _LEAST_OBJECTIVE * self.total)


@dataclass(frozen=True)
class Point:
    """A primal point with dual weights, over the rows of a statement.

    weights : (D,). multiplier : the transport multiplier, infinite when the statement has none.
    keep, flip : (n,), dual weights of the kept and the flipped piece; ``flip`` is empty where no label can be flipped.
    norm_dual : (P,), dual of the norm constraint, the part that the stationarity equation subtracts.
    """

    weights: FloatArray
    multiplier: float
    keep: FloatArray
    flip: FloatArray
    norm_dual: FloatArray


@dataclass(frozen=True)
class Iterate(Point):
    """A point with its duality gap and primal objective, in the units of the statement."""

    gap: float
    objective: float
