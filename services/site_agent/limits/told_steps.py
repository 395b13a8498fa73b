"""Steps in which a plant tells losses, errors and risks of a model: none so fine that one row's reading comes out.

A model can be made of which one row alone has a loss, however small: digits of what is told are then digits of that
row, and models beside one another tell the next ones. So a step is never below a five-hundredth of what one row may add
(:mod:`services.site_agent.limits.row_reach`), which goes by the weights and the number of rows; and before it is
rounded a figure is moved by a share of that, in the same direction, which is drawn by the vault's secret and the model:
the place where rounding goes over from one step to the next would else tell a further digit with every other model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.basics import FloatArray

DIGITS: Final = 4
"""Of losses, errors and risks: as many as reports have."""
FINEST: Final = 1.0 / 500.0
"""Of what one row may add: the share in which the guard hides a row behind others (``vault.isolation.exposure``)."""
MOST_STEPS: Final = 2.0
"""By which a figure is off at most, beside its digits: one that is drawn, and one of rounding."""
_EPS = 4 * float(np.finfo(np.float64).eps)
"""What a division leaves of a number that has so few digits."""

Draw = Callable[[bytes], FloatArray]
"""Shares (2,) from 0 to 1 of a question, by a secret: of figures of the training rows, and of the held-out ones."""


def told_down(values: FloatArray, reach: ArrayLike, share: float) -> FloatArray:
    """What is told of sums or means (..) of 0 or more, at or below them; one row may add ``reach``."""
    least = FINEST * np.asarray(reach, dtype=np.float64)
    return rounded_down(np.maximum(values - share * least, 0.0), DIGITS, least)


def told_up(values: FloatArray, reach: ArrayLike, share: float) -> FloatArray:
    """The same at or above them."""
    least = FINEST * np.asarray(reach, dtype=np.float64)
    return rounded_up(values + share * least, DIGITS, least)


def rounded_down(values: FloatArray, digits: int, least: ArrayLike = 0.0) -> FloatArray:
    """The largest numbers of so many significant digits at or below values of 0 or more; what is not finite stays.

    ``least``: they are multiples of that where it is more than 1 in the last digit.
    """
    some, whole = _steps(values, digits, least)
    # A value that has so few digits stays what it is: 0.3 is 2999.9... of its last ones.
    return np.where(some, np.floor(values / whole * (1.0 + _EPS)) * whole, values)


def rounded_up(values: FloatArray, digits: int, least: ArrayLike = 0.0) -> FloatArray:
    """The smallest numbers of so many significant digits at or above values of 0 or more; ``least`` as above."""
    some, whole = _steps(values, digits, least)
    return np.where(some, np.ceil(values / whole * (1.0 - _EPS)) * whole, values)


def _steps(values: FloatArray, digits: int, least: ArrayLike) -> tuple[NDArray[np.bool_], FloatArray]:
    """Which values are above 0 and finite, and the step of each: 1 in the last of its digits, at least ``least``."""
    some = np.isfinite(values) & (values > 0)
    places = np.log10(values, where=some, out=np.full_like(values, digits - 1.0))
    return some, np.maximum(10.0 ** (np.floor(places) - (digits - 1)), least)
