"""The true value lies in the enclosure, by exact arithmetic, and the enclosure is narrow."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.verification.bounds import norm_at
from services.verification.enclosures import Interval, dot, greatest_norm, sums, times

NUMBERS = st.floats(-1e6, 1e6).flatmap(lambda x: st.sampled_from([x, x * 1e-12, x * 1e12, float(round(x))]))
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30)


def _exact(pairs: list[tuple[float, float]]) -> Fraction:
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


@given(pairs=PAIRS)
def test_a_sum_of_products_lies_inside(pairs: list[tuple[float, float]]) -> None:
    left, right = np.array(pairs).T
    true = _exact(pairs)
    for found in (dot(left, right), sums(left, right)):
        assert Fraction(float(found.low)) <= true <= Fraction(float(found.high))


@given(pairs=PAIRS)
def test_a_split_sum_is_known_to_its_last_digits(pairs: list[tuple[float, float]]) -> None:
    left, right = np.array(pairs + [(-a, b) for a, b in pairs]).T
    found = sums(left, right)  # everything cancels
    assert found.low <= 0 <= found.high and found.high - found.low < 1e-300


def test_columns_are_summed_each_for_itself() -> None:
    shares, rows = np.array([0.1, 0.2, 0.3]), np.arange(6.0).reshape(3, 2)
    found = sums(shares, rows)
    assert found.low.shape == (2,)
    for k in range(2):
        true = _exact(list(zip(shares.tolist(), rows[:, k].tolist(), strict=True)))
        assert Fraction(float(found.low[k])) <= true <= Fraction(float(found.high[k]))
        assert found.high[k] - found.low[k] < 4e-15


@given(values=st.lists(NUMBERS, min_size=1, max_size=20), norm=st.sampled_from(["l1", "l2", "linf"]))
def test_a_norm_lies_inside(values: list[float], norm: str) -> None:
    exact = [abs(Fraction(value)) for value in values]
    size = float(greatest_norm(np.abs(values), norm))
    power = {"l1": sum(exact), "l2": sum(value * value for value in exact), "linf": max(exact)}[norm]
    root = 2 if norm == "l2" else 1
    assert Fraction(size) ** root >= power
    around = norm_at(np.array(values), {"l1": "linf", "l2": "l2", "linf": "l1"}[norm])
    assert float(around.high) == size and Fraction(float(around.low)) ** root <= power
    assert float(around.low) >= size * (1 - 1e-13) - 1e-300


@pytest.mark.parametrize(("factor", "low", "high"), [(2.0, 2.0, 6.0), (-2.0, -6.0, -2.0), (0.0, 0.0, 0.0)])
def test_a_product_keeps_its_ends_in_order(factor: float, low: float, high: float) -> None:
    found = times(np.array(factor), Interval(np.array(1.0), np.array(3.0)))
    assert low - 1e-14 <= found.low <= low and high <= found.high <= high + 1e-14


def test_a_sum_of_many_small_numbers_beside_a_large_one_lies_inside() -> None:
    """Each of them is lost where it is added to 1: ``n u`` of the sum in all."""
    small = np.r_[1.0, np.full(4000, 2.0**-54)]
    found = dot(small, np.ones(small.size))
    assert float(found.low) <= 1.0 and Fraction(float(found.high)) >= 1 + 4000 * Fraction(1, 2**54)
