"""The fingerprint of a lift: one for equal numbers, however they are written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.features.fourier import fourier_lift
from models.features.lift import Lift
from models.features.nystrom import drawn_points, nystrom_lift
from models.features.products import product_lift

WIDTHS = [1, 1.0, np.float64(1.0), np.float32(1.0), np.int64(1)]


@pytest.mark.parametrize("width", WIDTHS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("seed", [3, np.int64(3)], ids=lambda each: type(each).__name__)
def test_waves_of_equal_numbers_have_one_fingerprint(width: float, seed: int) -> None:
    asked = fourier_lift(2, 4, bandwidth=1.0, seed=3)
    lift = fourier_lift(2, 4, bandwidth=width, seed=seed, keep_linear=np.True_)  # type: ignore[arg-type]
    assert lift.fingerprint == asked.fingerprint


@pytest.mark.parametrize("width", WIDTHS, ids=lambda each: type(each).__name__)
def test_points_of_an_equal_bandwidth_have_one_fingerprint(width: float) -> None:
    asked = nystrom_lift(drawn_points(2, 4, 3), bandwidth=1.0)
    lift = nystrom_lift(drawn_points(2, 4, 3), bandwidth=width, keep_linear=np.True_)  # type: ignore[arg-type]
    assert lift.fingerprint == asked.fingerprint


def test_products_of_numpys_numbers_have_one_fingerprint() -> None:
    asked = product_lift(3, (0, 2))
    chosen = np.flatnonzero([True, False, True])
    assert product_lift(3, chosen).fingerprint == asked.fingerprint  # type: ignore[arg-type]


def test_a_fingerprint_is_of_every_number_of_a_lift() -> None:
    """Two versions of numpy that draw other phases from one seed lift otherwise."""
    waves, points = fourier_lift(2, 4, bandwidth=1.0, seed=3), nystrom_lift(drawn_points(2, 4, 3), bandwidth=1.0)
    others: list[Lift] = [
        replace(waves, frequencies=waves.frequencies * 1.001), replace(waves, phases=waves.phases + 1e-9),
        replace(waves, keep_linear=False), replace(waves, bandwidth=1.1), replace(waves, seed=4), waves,
        replace(points, points=points.points * 0.999), replace(points, bandwidth=1.1),
        replace(points, keep_linear=False), replace(points, points=points.points.reshape(2, 4)), points,
    ]
    assert len({each.fingerprint for each in others}) == len(others)
    assert replace(waves).fingerprint == waves.fingerprint and replace(points).fingerprint == points.fingerprint
