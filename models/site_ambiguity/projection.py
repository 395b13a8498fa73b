r"""Euclidean projection on the mixtures that must be reckoned with, ``Q = simplex cap {||q - centre||_p <= radius}``.

What methods need that walk over the mixture itself (DRFA, Stochastic AFL), instead of asking for the worst one. The
capped simplex ``q_g <= 1 / (share n)`` with a share of at most 1/2 is the ball with p = inf and radius
``(1 - share) / (share n)`` around equal weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from models.basics import FloatArray
from models.geometry.norms import vector_norm
from models.geometry.projections import least_where, water_level
from models.site_ambiguity.ball import MixtureBall, pull_into_ball


def nearest_mixture(point: FloatArray, centre: FloatArray, ball: MixtureBall) -> FloatArray:
    r"""``argmin_{q in Q} ||q - point||_2``, shape (G,).

    - p = inf: a box cut by the simplex, by sorting;
    - p = 2: ``q(t) = nearest of the simplex to (point + t centre) / (1 + t)``, at the least t >= 0 that is in the ball;
    - p = 1: ``q(t)`` draws every weight towards its centre by t and no further, then as for p = 2.

    t is found by halving, to the last bits.

    ``point`` (G,) is finite; ``centre`` (G,) is at or above 0 with sum 1.
    """
    if ball.radius == 0:
        return centre
    zero, one = np.zeros_like(centre), np.ones_like(centre)
    if ball.norm == "linf":
        low, high = np.maximum(centre - ball.radius, zero), np.minimum(centre + ball.radius, one)
        return pull_into_ball(_between(point, low, high), centre, ball)
    direct = _between(point, zero, one)
    if vector_norm(direct - centre, ball.norm) <= ball.radius:
        return direct

    def drawn(price: float) -> FloatArray:
        if ball.norm == "l2":
            return _between((point + price * centre) / (1.0 + price), zero, one)
        return _drawn_by(point, centre, price)

    return pull_into_ball(drawn(_least_price(drawn, centre, ball)), centre, ball)


def _between(point: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    return np.clip(point - water_level(point, low, high, 1.0), low, high)


def _least_price(drawn: Callable[[float], FloatArray], centre: FloatArray, ball: MixtureBall) -> float:
    low, high = 0.0, 1.0
    while vector_norm(drawn(high) - centre, ball.norm) > ball.radius:
        low, high = high, 2.0 * high
    return least_where(lambda price: bool(vector_norm(drawn(price) - centre, ball.norm) <= ball.radius), low, high)


def _drawn_by(point: FloatArray, centre: FloatArray, price: float) -> FloatArray:
    """``argmin 1/2 ||q - point||^2 + price ||q - centre||_1`` over the simplex: the level again by halving."""

    def at(level: float) -> FloatArray:
        gap = point - level - centre
        return np.asarray(np.maximum(centre + np.sign(gap) * np.maximum(np.abs(gap) - price, 0.0), 0.0))

    low, high = float(point.min()) - price - 1.0, float(point.max()) + price + 1.0
    return at(least_where(lambda level: bool(at(level).sum() <= 1.0), low, high))
