r"""The interval around an estimate that a certified worst-case risk implies.

Let R be the worst-case risk of a regression model: ``E_P L(z) <= R`` for the residual z = estimate - target under every
distribution P of the certified set (each site's Wasserstein ball, every mixture of the ball over the sites). By
Markov's inequality

    P( L(z) >= R / (1 - confidence) ) <= 1 - confidence,

so with probability at least ``confidence`` the residual lies where ``L(z) < R / (1 - confidence)``, an interval, for L
is convex with its least value 0 at 0. It holds for all those distributions at once, and is wide for that.
"""

from __future__ import annotations

import math

from models.basics import ProblemError
from models.losses.base import Loss
from models.losses.regression import EpsilonInsensitive, Huber, Pinball, Squared


def residual_interval(loss: Loss, risk: float, confidence: float) -> tuple[float, float]:
    """Least and largest residual z with ``L(z) <= risk / (1 - confidence)``, in the units of the target.

    ``ProblemError`` where the confidence is not between 0 and 1, the risk is negative, or the loss is not one of
    regression.
    """
    if not 0.0 < confidence < 1.0:
        raise ProblemError(f"confidence must lie between 0 and 1, both excluded, got {confidence}")
    if not (math.isfinite(risk) and risk >= 0):
        raise ProblemError(f"a worst-case risk must be a finite number at or above 0, got {risk}")
    height = risk / (1.0 - confidence)
    if isinstance(loss, Huber):
        knee = 0.5 * loss.epsilon * loss.epsilon  # infinite where a power of Python's would raise
        size = math.sqrt(2.0 * height) if height <= knee else height / loss.epsilon + 0.5 * loss.epsilon
        return -size, size
    if isinstance(loss, EpsilonInsensitive):
        return -(height + loss.epsilon), height + loss.epsilon
    if isinstance(loss, Pinball):
        return -height / loss.quantile, height / (1.0 - loss.quantile)
    if isinstance(loss, Squared):
        return -math.sqrt(height), math.sqrt(height)
    raise ProblemError(f"an interval needs a regression loss, got {loss.name}")
