"""Figures that are told in steps: on the side that is promised, off by as much as is promised and no more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from models.basics import FloatArray
from services.site_agent.limits.told_steps import (
    DIGITS,
    FINEST,
    MOST_STEPS,
    rounded_down,
    rounded_up,
    told_down,
    told_up,
)

Told = Callable[[FloatArray, float, float], FloatArray]
REACH = 0.7
STEP = FINEST * REACH
RNG = np.random.default_rng(5)
VALUES = RNG.uniform(0.05, 0.5, 20_000)  # their fourth digit is finer than a step, so that the steps alone count


@pytest.mark.parametrize(("told", "side"), [(told_up, 1.0), (told_down, -1.0)])
def test_a_figure_is_off_by_two_steps_at_most_and_comes_near_to_that(told: Told, side: float) -> None:
    shares = RNG.uniform(size=50)
    off = side * np.array([told(VALUES, REACH, share) - VALUES for share in shares])
    assert 0.0 <= off.min() and off.max() <= MOST_STEPS * STEP * (1.0 + 1e-9)
    assert off.max() > 0.95 * MOST_STEPS * STEP, "the bound is what it says"
    rounding = off - shares[:, None] * STEP
    assert -STEP * 1e-9 <= rounding.min() and rounding.max() <= STEP * (1.0 + 1e-9), "moved by its share, then rounded"


def test_without_a_reach_the_digits_alone_count_and_what_has_few_stays() -> None:
    for told, side in ((told_up, 1.0), (told_down, -1.0)):
        off = side * (told(VALUES, 0.0, 0.5) - VALUES)
        last = 10.0 ** (np.floor(np.log10(VALUES)) - (DIGITS - 1))
        assert (off >= 0.0).all() and (off < last * (1.0 + 1e-9)).all() and off.max() > 0.9 * last.max()
    few = np.round(RNG.uniform(0.0, 9.0, 1_000), DIGITS - 1)
    np.testing.assert_allclose(rounded_down(few, DIGITS), few, rtol=1e-12, atol=0.0)
    np.testing.assert_allclose(rounded_up(few, DIGITS), few, rtol=1e-12, atol=0.0)


def test_what_is_zero_or_not_finite_stays_and_nothing_is_told_below_zero() -> None:
    values = np.array([0.0, np.inf, np.nan])
    for rounded in (rounded_down, rounded_up):
        np.testing.assert_array_equal(rounded(values, DIGITS, STEP), values)
    assert told_down(np.array([STEP / 2.0]), REACH, 1.0) == 0.0
