r"""What a site's risk can be at given weights, whatever its rows: the server holds answers to it.

Scaled features lie in [0, 1], scaled targets too, so the score ``<w, x> + b`` of every row lies between the sums of the
negative and of the positive weights, and the loss of every row between its least and its largest value on what that
makes of margins or residuals. A worst case over a ball of radius eps adds at most ``eps lipschitz steep``: mass that
moves by d gains no more than ``lipschitz steep d``, ``steep`` being ``||w||_*``, or for a regression, where the target
moves as well, the larger of that and ``1 / label_flip_cost``. At weights of 0 a margin loss leaves one value only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.geometry.norms import dual_norm
from models.losses.base import Loss

TOLERANCE = 1e-6
"""Relative to max(1, highest): above what rounding and a site's solver leave."""


@dataclass(frozen=True)
class RiskRange:
    """Least and largest worst-case risk that any rows can have."""

    low: float
    high: float

    def __contains__(self, risk: float) -> bool:
        """Whether a risk lies in the range, but for rounding."""
        allowed = TOLERANCE * max(1.0, self.high if math.isfinite(self.high) else self.low)
        return self.low - allowed <= risk <= self.high + allowed


def risk_range(
    weights: FloatArray, loss: Loss, *, radius: float, label_flip_cost: float, transport_norm: TransportNorm,
    fit_intercept: bool, multiplier: float = 0.0,
) -> RiskRange:
    """Range of the worst-case risk at weights (D,), the intercept last where there is one.

    ``multiplier`` : of transport, where the risk is that of a given price at or above the dual norm (WAFL).
    """
    numbers = np.asarray(weights, dtype=np.float64).tobytes()
    low, high, norm = _without_ball(numbers, loss, transport_norm, fit_intercept)
    steep = max(norm, multiplier)
    if loss.task == "regression":
        steep = max(steep, 1.0 / label_flip_cost)
    return RiskRange(low, high + (radius * loss.lipschitz * steep if radius > 0 else 0.0))


@lru_cache(maxsize=64)
def _without_ball(
    weights: bytes, loss: Loss, transport_norm: TransportNorm, fit_intercept: bool
) -> tuple[float, float, float]:
    """Least and largest loss of any row at weights, and their dual norm; all sites are mostly asked at the same."""
    numbers = np.frombuffer(weights)
    features = numbers[:-1] if fit_intercept else numbers
    intercept = float(numbers[-1]) if fit_intercept else 0.0
    low = float(np.minimum(features, 0.0).sum()) + intercept
    high = float(np.maximum(features, 0.0).sum()) + intercept
    spans = ((low, high), (-high, -low)) if loss.task == "classification" else ((low - 1.0, high),)
    return (
        min(_least(loss, *span) for span in spans),
        max(float(loss.value(np.array(span)).max()) for span in spans),
        float(dual_norm(features, transport_norm)),
    )


def steepest_slope(loss: Loss, radius: float) -> float:
    """Largest absolute entry of a slope of any cut: ``lipschitz (1 + radius)``, for no feature has moved further."""
    return loss.lipschitz * (1.0 + radius)


def _least(loss: Loss, low: float, high: float) -> float:
    """Least of a convex loss between two ends, or 0 where it lies inside."""
    rising, falling = loss.slope(np.array([low, high]))
    values = loss.value(np.array([low, high]))
    return float(values[0]) if rising >= 0 else float(values[1]) if falling <= 0 else 0.0
