"""Saddle point of the worst-case risk at fixed weights: price of transport and what the adversary does at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, TransportNorm
from models.geometry.supports import BoxSupport

KEPT, UNTOUCHED, FLIPPED = 1, 0, -1
"""What a plan does with a sample: move it under its label, leave it (its loss is 0), move it and flip its label."""


@dataclass(frozen=True)
class Rows:
    """One site's rows with the plane that is judged; ``margins`` are ``y (<w, x> + b)``."""

    features: FloatArray
    labels: FloatArray
    weights: FloatArray
    margins: FloatArray
    radius: float
    label_flip_cost: float
    transport_norm: TransportNorm
    support: BoxSupport | None
    row_weights: FloatArray | None = None

    def weigh(self, values: FloatArray) -> FloatArray:
        """Values (N,) of the rows, each as often as its row counts."""
        return values if self.row_weights is None else values * self.row_weights

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.labels.shape[0])


@dataclass(frozen=True)
class AdversaryAction:
    """One optimal answer of the adversary, used with probability ``share``.

    ``act`` (N,) holds KEPT, UNTOUCHED or FLIPPED; ``extent`` (N,) how far each sample is moved inside its box (see
    ``models.worst_case.box_transport``), None where nothing is moved.
    """

    share: float
    act: NDArray[np.int8]
    extent: FloatArray | None = None

    @property
    def extents(self) -> FloatArray:
        """The extent of every sample, 0 where nothing is moved."""
        return np.zeros(self.act.shape[0]) if self.extent is None else self.extent


@dataclass(frozen=True)
class Saddle:
    """Value, price and the mixture of plans that spends the radius exactly.

    ``leftover`` is the part of the radius that no action spends; with an unbounded support it is worth ``||w||_*`` a
    unit, whichever sample it is spent on.
    """

    value: float
    multiplier: float
    actions: tuple[AdversaryAction, ...]
    leftover: float = 0.0

    def label_coefficients(self, labels: FloatArray) -> FloatArray:
        """Coefficients c (N,) with which ``x_i`` enters the subgradient: ``sum_i c_i x_i`` plus what moving adds."""
        total = np.zeros(labels.shape[0])
        for action in self.actions:
            total -= action.share * action.act
        return np.asarray(total * labels / labels.shape[0])


@dataclass(frozen=True)
class RiskEvaluation:
    r"""Worst-case risk at a plane (w, b) and what it proves at every other one, the intercept apart.

        r(u, c) >= value - slack + <slope, u - w> + intercept_slope (c - b) + norm_weight (||u||_* - ||w||_*)
                   + <swing, |u| - |w|>

    ``swing`` (P,) is at or above 0 (``models.worst_case.box_transport``); None: nothing. ``multiplier`` is the optimal
    one of transport. ``slack`` is 0 but where a solver with a tolerance is asked: then ``value`` is at or above the
    risk, and ``value - slack`` at or below it.

    ``rows`` (N,) are the coefficients with which the rows enter the slope, ``slope = rows @ features`` plus what moving
    adds (``swing`` and the walls); None where a solver gives none. Row-level: for the site's own account.
    """

    value: float
    multiplier: float
    slope: FloatArray
    intercept_slope: float
    norm_weight: float
    slack: float = 0.0
    swing: FloatArray | None = None
    rows: FloatArray | None = None
