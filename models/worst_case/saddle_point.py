"""Saddle point of the worst-case risk at fixed weights: price of transport and what the adversary does at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.problem import BoxSupport, FloatArray, TransportNorm

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

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.labels.shape[0])


@dataclass(frozen=True)
class Plan:
    """One optimal answer of the adversary, used with probability ``share``.

    ``act`` (N,) holds KEPT, UNTOUCHED or FLIPPED; ``reach`` (N,) how far each sample is moved inside its box (see
    ``models.box_gains``), None where nothing is moved.
    """

    share: float
    act: NDArray[np.int8]
    reach: FloatArray | None = None


@dataclass(frozen=True)
class Saddle:
    """Value, price and the mixture of plans that spends the radius exactly.

    ``leftover`` is the part of the radius that no plan spends; with an unbounded support it is worth ``||w||_*`` a
    unit, whichever sample it is spent on. ``moved`` (P,) is how far each feature is moved inside its box, as a mean
    over rows and plans; None where nothing is.
    """

    value: float
    price: float
    plans: tuple[Plan, ...]
    leftover: float = 0.0
    moved: FloatArray | None = None

    def label_coefficients(self, labels: FloatArray) -> FloatArray:
        """Coefficients c (N,) with which ``x_i`` enters the subgradient: ``sum_i c_i x_i`` plus what moving adds."""
        total = np.zeros(labels.shape[0])
        for plan in self.plans:
            total -= plan.share * plan.act
        return np.asarray(total * labels / labels.shape[0])


@dataclass(frozen=True)
class Judged:
    r"""Worst-case risk at a plane (w, b) and what it proves at every other one, the intercept apart.

    ``r(u, c) >= value - slack + <slope, u - w> + flat (c - b) + norm_weight (||u||_* - ||w||_*)``. ``price`` is the
    optimal price of transport; ``slack`` is 0 but where the value comes from a solver with a tolerance.
    """

    value: float
    price: float
    slope: FloatArray
    flat: float
    norm_weight: float
    slack: float = 0.0
