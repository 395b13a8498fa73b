r"""The interval that a worst-case risk implies around a prediction.

If ``E[L(z)] <= R`` for every distribution that is reckoned with, z = prediction - target, then by Markov's inequality
``P(L(z) >= t) <= R / t``. So with ``t = R / (1 - confidence)`` the interval ``{y : L(prediction - y) <= t}`` holds the
target with probability at least ``confidence``, whichever of these distributions is the true one. Nothing is assumed of
the errors' shape, so the interval is wide: expect a coverage well above the confidence.
"""

from __future__ import annotations

import math

from models.basics import ProblemError
from models.losses.base import Loss
from models.losses.epsilon_insensitive import EpsilonInsensitive
from models.losses.huber import Huber
from models.losses.pinball import Pinball


def residual_interval(loss: Loss, worst_case_risk: float, confidence: float) -> tuple[float, float]:
    r"""``(low, high)`` such that the residual ``z = prediction - target`` lies between them with this confidence.

    The target then lies in ``[prediction - high, prediction - low]``.

    Raises
    ------
    ProblemError
        A confidence outside (0, 1), a risk that is no finite number at or above 0, or no loss of a residual.
    """
    if not 0.0 < confidence < 1.0:
        raise ProblemError(f"confidence must lie between 0 and 1, both excluded, got {confidence:g}")
    if not (math.isfinite(worst_case_risk) and worst_case_risk >= 0):
        raise ProblemError(f"an interval needs a finite worst-case risk at or above 0, got {worst_case_risk:g}")
    return level_set(loss, worst_case_risk / (1.0 - confidence))


def level_set(loss: Loss, level: float) -> tuple[float, float]:
    """Ends of ``{z : L(z) <= level}`` of a regression loss, ``level`` at or above 0."""
    if isinstance(loss, Pinball):
        return -level / loss.quantile, level / (1.0 - loss.quantile)
    if isinstance(loss, EpsilonInsensitive):
        return -(level + loss.epsilon), level + loss.epsilon
    if isinstance(loss, Huber):
        bent = level <= 0.5 * loss.epsilon**2
        end = math.sqrt(2.0 * level) if bent else level / loss.epsilon + 0.5 * loss.epsilon
        return -end, end
    raise ProblemError(f"an interval around a prediction needs a regression loss, the loss is {loss.name}")
