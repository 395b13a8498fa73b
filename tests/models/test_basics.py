"""Digits that are dropped, and arrays that are put together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.basics import rounded, stack_arrays, without_needless_digits


@pytest.mark.parametrize("share", [0.3, 1e-3, 1e-7])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1.5e9])
def test_rounded_values_are_multiples_of_a_power_of_two_and_near(share: float, size: float) -> None:
    values = size * np.random.default_rng(0).normal(size=40)
    before, largest = values.copy(), float(np.abs(values).max())
    found = rounded(values, share)
    assert np.abs(found - values).max() <= 0.5 * share * largest
    unit = 2.0 ** math.floor(math.log2(share * largest))
    assert share * largest / 2 < unit <= share * largest
    assert (np.round(found / unit) == found / unit).all() and (values == before).all()
    assert (rounded(found, share / 4) == found).all()


def test_what_cannot_be_rounded_comes_back_as_it_is() -> None:
    third, endless = np.ones(3) / 3, np.array([1.0, np.inf])
    least = np.array([0.0, 3e-322])  # the power of two that it is a multiple of is no number any more
    for values, share in ((least, 1e-6), (np.zeros(3), 0.1), (third, 0.0), (endless, 0.1), (np.zeros(0), 0.1)):
        assert (rounded(values, share) == values).all()


def test_the_digits_dropped_of_a_point_are_a_share_of_the_gap_and_few() -> None:
    """A ten-thousandth of the gap, at most a millionth; of a wide gap no more."""
    point = np.array([1.0, 1 / 3, -2 / 7])
    for gap, most in ((1e-3, 1e-7), (1e-2, 1e-6), (1.0, 1e-6)):
        off = np.abs(without_needless_digits(point, gap) - point).max()
        assert most / 100 < off <= most / 2
    assert (without_needless_digits(point, 0.0) == point).all()


def test_arrays_of_one_name_are_stacked_in_order() -> None:
    parts = [{"a": np.array(k), "b": np.full(2, float(k))} for k in range(3)]
    found = stack_arrays(parts)
    assert found["a"].tolist() == [0.0, 1.0, 2.0] and found["a"].dtype == np.float64
    assert found["b"].shape == (3, 2) and found["b"][2].tolist() == [2.0, 2.0]
