"""What is outside a range: not the end itself as single precision has it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from services.contracts.machines.value_range import Ranges, ValueRange


def ranges(low: float, high: float, out_of_range: Literal["clip", "refuse"] = "refuse") -> Ranges:
    return Ranges([ValueRange(name="a", low=low, high=high, out_of_range=out_of_range)])


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.3), (-0.7, 0.1), (0.1, 1e7), (-1e300, 1.7e308), (-5e-324, 1e-40)])
def test_an_end_that_was_stored_in_single_precision_is_inside_and_is_the_end(low: float, high: float) -> None:
    held = ranges(low, high)
    with np.errstate(over="ignore"):
        stored = np.array([[low], [high]]).astype(np.float32).astype(np.float64)
    stored = np.where(np.isfinite(stored), stored, [[low], [high]])
    stored = np.where(np.abs(stored) < 1e-30, [[low], [high]], stored)  # single precision has hardly any so small
    assert not held.outside(stored).any()
    np.testing.assert_allclose(held.scale(held.clip(stored)), [[0.0], [1.0]], atol=1e-7)


@pytest.mark.parametrize("value", [0.3000001, -1e-300, 1e300, -np.inf])
def test_what_is_farther_out_is_outside(value: float) -> None:
    held = ranges(0.0, 0.3)
    outside = held.outside(np.array([[0.3], [value]]))
    assert outside.tolist() == [[False], [True]] and held.first_refused(outside) == (1, 0)
