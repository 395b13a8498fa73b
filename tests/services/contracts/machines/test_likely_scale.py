"""Which readings speak for logarithms: spread over decades, whatever their unit, and not those even over a range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.contracts.machines.likely_scale import likely_log_range, speaks_for_logarithms

DRAW = np.random.default_rng(5)
LOGNORMAL = np.exp(DRAW.normal(size=400))


@given(unit=st.floats(1e-9, 1e9))
def test_the_unit_decides_nothing(unit: float) -> None:
    assert speaks_for_logarithms(unit * LOGNORMAL)
    assert not speaks_for_logarithms(unit * DRAW.uniform(0.0, 1.0, 400) + 1e-300), "even from 0 is no decades"


@pytest.mark.parametrize("readings", [
    -LOGNORMAL, np.append(LOGNORMAL, 0.0), np.exp(0.3 * DRAW.normal(size=400)), np.full(30, 7.0), np.full(3, np.nan),
    40.0 + DRAW.normal(size=400), 1.0 / LOGNORMAL.max() + 50.0 - LOGNORMAL.clip(0.0, 40.0),
], ids=["below 0", "with a 0", "half a decade", "still", "none", "normal", "leaning the other way"])
def test_others_stay_as_they_are(readings: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert not speaks_for_logarithms(readings)


def test_a_missing_reading_changes_nothing_and_a_mistyped_one_does_not_set_the_range() -> None:
    assert speaks_for_logarithms(np.append(LOGNORMAL, np.nan))
    ends = LOGNORMAL.min(), LOGNORMAL.max()
    assert likely_log_range(np.append(LOGNORMAL, np.nan)) == ends
    assert likely_log_range(np.append(LOGNORMAL, [1e12, 1e-14])) == ends


@pytest.mark.parametrize(("top", "speaks"), [(9.99, False), (10.0, True)])
def test_one_decade_between_the_quantiles_is_enough(top: float, speaks: bool) -> None:
    readings = np.r_[np.ones(10), np.full(80, np.sqrt(top)), np.full(10, top)]
    assert speaks_for_logarithms(readings) == speaks
