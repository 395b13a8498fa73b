"""The range that readings speak for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from services.contracts.machines.likely_range import FENCE, likely_range

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
