"""The range that readings speak for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from models.features.likely_range import FENCE, LONG, TAIL, likely_range, range_for_classes

READINGS = arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e6, 1e6))


@given(READINGS)
def test_the_middle_counts_and_the_mirror_gives_the_mirror(
    readings: np.ndarray
) -> None:
    low, high = likely_range(readings)
    first, last = np.quantile(readings, [0.05, 0.95])
    assert readings.min() <= low <= high <= readings.max() and {low, high} <= set(readings.tolist())
    inside = (readings >= first) & (readings <= last)
    assert not inside.any() or (low <= readings[inside].min() and readings[inside].max() <= high)
    mirrored = likely_range(-readings)
    assert mirrored == (-high, -low)


def test_one_mistyped_reading_does_not_set_the_range() -> None:
    readings = np.array([*np.linspace(0.0, 6.0, 100), 55.0, np.nan])
    assert likely_range(readings) == (0.0, 6.0)
    assert likely_range(-readings) == (-6.0, 0.0)


def test_the_last_reading_within_the_fence_counts_and_the_first_beyond_does_not() -> None:
    body = np.linspace(0.0, 1.0, 1001)
    width = 0.9
    for reading, counts in ((0.94 + FENCE * width, True), (0.97 + FENCE * width, False)):
        low, high = likely_range(np.append(body, reading))
        assert (high == reading) is counts and low == 0.0


def test_a_sensor_that_seldom_moves_keeps_what_it_read() -> None:
    readings = np.zeros(100)
    readings[3] = 8.0
    assert likely_range(readings) == (0.0, 8.0)


def test_no_reading_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="no reading is a number"):
        likely_range(np.array([np.nan, np.inf]))


@given(READINGS)
def test_of_classes_the_range_is_within_the_likely_one_and_holds_the_middle(readings: np.ndarray) -> None:
    low, high = range_for_classes(readings)
    widest, (first, last) = likely_range(readings), np.quantile(readings, [0.05, 0.95])
    assert widest[0] <= low <= high <= widest[1]
    inside = readings[(readings >= first) & (readings <= last)]
    assert not inside.size or (low <= inside.min() and inside.max() <= high)
    assert range_for_classes(-readings) == pytest.approx((-high, -low), rel=1e-9, abs=1e-9)


def test_of_classes_a_range_of_four_middle_widths_stays_and_a_wider_one_is_cut() -> None:
    body = np.linspace(0.0, 1.0, 10_001)
    for wide, kept in ((LONG * 0.9 - 0.01, True), (LONG * 0.9 + 0.01, False)):
        low, high = range_for_classes(np.append(body, wide))
        assert low == 0.0 and likely_range(np.append(body, wide)) == (0.0, wide)
        assert high == (wide if kept else pytest.approx(0.95 + TAIL * 0.9, abs=1e-3))


def test_of_classes_both_tails_are_cut_and_what_is_missing_is_none() -> None:
    readings = np.random.default_rng(5).standard_t(1.5, 2000)
    low, high = range_for_classes(np.append(readings, [np.nan, np.inf]))
    first, last = np.quantile(readings, [0.05, 0.95])
    assert (low, high) == (first - TAIL * (last - first), last + TAIL * (last - first))


def test_of_classes_a_sensor_that_seldom_moves_keeps_what_it_read() -> None:
    readings = np.zeros(100)
    readings[3] = 8.0
    assert range_for_classes(readings) == (0.0, 8.0)


def test_readings_at_the_fence_count_and_a_range_of_just_four_widths_is_not_cut() -> None:
    """By counts, whose quantiles are readings: from 0 to 1."""
    counts = np.array([50.0, 50.0, 1.0])
    for end, beyond in ((1.0 + FENCE, np.nextafter(1.0 + FENCE, 9.0)), (-FENCE, np.nextafter(-FENCE, -9.0))):
        assert likely_range(np.array([0.0, 1.0, end]), counts=counts) == (min(end, 0.0), max(end, 1.0))
        assert likely_range(np.array([0.0, 1.0, beyond]), counts=counts) == (0.0, 1.0)
    assert range_for_classes(np.array([0.0, 1.0, LONG]), counts) == (0.0, LONG)
    assert range_for_classes(np.array([0.0, 1.0, np.nextafter(LONG, 9.0)]), counts) == (0.0, 1.0 + TAIL)


@given(READINGS, st.integers(0, 2**32 - 1))
def test_a_reading_that_was_made_so_often_is_as_many_readings(readings: np.ndarray, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(1, 30, readings.size)
    each = np.repeat(readings, counts)
    for found in (likely_range, range_for_classes):
        assert found(readings, counts=counts.astype(float)) == found(each, counts=np.ones(each.size))


def test_a_mistake_that_was_made_often_is_none() -> None:
    readings = np.array([0.0, 1.0, 100.0])
    assert likely_range(readings, counts=np.array([50.0, 50.0, 1.0])) == (0.0, 1.0)
    assert likely_range(readings, counts=np.array([50.0, 50.0, 10.0])) == (0.0, 100.0)
