r"""What a number of noisy sums tells of one row, all together: zero-concentrated privacy and (epsilon, delta).

A sum of whole numbers whose L2 norm changes by at most ``d`` when one row is replaced, with discrete Gaussian noise of
variance ``sigma^2`` on each, is ``rho``-zCDP with ``rho = d^2 / (2 sigma^2)``; questions may depend on earlier answers,
and the rhos add up (Bun and Steinke 2016; Canonne, Kamath and Steinke 2020, theorem 14). In the usual terms, for every
order alpha > 1 (ibid., corollary 13):

    delta   = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) (1 - 1/alpha)^alpha
    epsilon = alpha rho + log(1 / (alpha delta)) / (alpha - 1) + log(1 - 1/alpha)

Each order proves what it gives, so the best of a fixed list does. Two data sets are neighbours here if one row was
replaced by another: how many rows a plant has is no secret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError

_ORDERS: FloatArray = 1.0 + np.geomspace(1e-4, 1e7, 4001)
"""So dense that the best of them is within 1e-5 of the best of all, for budgets that anybody states."""
_LAST_DIGITS = 1e-9
"""What adding up a run's answers one by one may be off by."""
_HALVINGS = 100
"""Of a bracket over 30 powers of ten: enough for all digits of float64."""


@dataclass(frozen=True)
class NoiseAccount:
    """What a plant's noisy answers have told of its rows so far, in all runs on the same rows; it keeps this itself.

    A server that asks more often than it said, or states a larger budget, is refused by the plant's own limit.
    """

    rho: float = 0.0

    def charged(self, rho: float, heads: int, epsilon: float, delta: float) -> NoiseAccount:
        """The account after an answer of so many heads with budget ``rho`` each, before it is given.

        Raises
        ------
        ProblemError
            With it the plant would have told more than its limit ``(epsilon, delta)`` allows, or nothing is charged.
        """
        if not (rho > 0 and heads >= 1):
            raise ProblemError(f"an answer has heads and a budget above 0, got {heads} heads and rho {rho:g}")
        after = NoiseAccount(self.rho + rho * heads)
        told = epsilon_of(after.rho, delta)
        # A budget that was found by halving is met again up to its last digits.
        if told > epsilon * (1.0 + _LAST_DIGITS):
            raise ProblemError(
                f"with this answer epsilon would be {told:.4g} at delta {delta:g}, and the limit is {epsilon:g}"
            )
        return after


def epsilon_of(rho: float, delta: float) -> float:
    """Least epsilon that is proven of ``rho``-zCDP at ``delta`` in (0, 1).

    :class:`ProblemError` outside of these, or for a negative rho.
    """
    if rho < 0 or not 0 < delta < 1:
        raise ProblemError(f"rho must be at or above 0 and delta in (0, 1), got {rho:g} and {delta:g}")
    if rho == 0:
        return 0.0
    found = _ORDERS * rho - np.log(_ORDERS * delta) / (_ORDERS - 1.0) + np.log1p(-1.0 / _ORDERS)
    return max(float(found.min()), 0.0)


def delta_of(rho: float, epsilon: float) -> float:
    """Least delta that is proven of ``rho``-zCDP at ``epsilon`` at or above 0.

    :class:`ProblemError` for a negative one of them.
    """
    if rho < 0 or epsilon < 0:
        raise ProblemError(f"rho and epsilon must be at or above 0, got {rho:g} and {epsilon:g}")
    if rho == 0:
        return 0.0
    logs = (_ORDERS - 1.0) * (_ORDERS * rho - epsilon) - np.log(_ORDERS - 1.0) + _ORDERS * np.log1p(-1.0 / _ORDERS)
    return min(math.exp(min(float(logs.min()), 0.0)), 1.0)


def rho_of(epsilon: float, delta: float) -> float:
    """Largest rho, to the last digits, of which ``(epsilon, delta)`` is proven.

    :class:`ProblemError` unless epsilon is above 0 and delta in (0, 1).
    """
    if not (epsilon > 0 and 0 < delta < 1 and math.isfinite(epsilon)):
        raise ProblemError(f"epsilon must be above 0 and delta in (0, 1), got {epsilon:g} and {delta:g}")
    low, high = 0.0, epsilon + 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of(middle, delta) <= epsilon else (low, middle)
    return low
