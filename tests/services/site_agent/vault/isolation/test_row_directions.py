"""A sketch that is a row's but for the angle allowed is found among many rows, wherever what is left points."""

from __future__ import annotations

import numpy as np
import pytest

from services.site_agent.vault.isolation.exposure import Differences
from services.site_agent.vault.isolation.row_directions import OF_COEFFICIENTS, RowDirections
from services.site_agent.vault.isolation.sketches import SKETCH

ANGLE = 0.002


def candidates(rows: RowDirections, sketches: np.ndarray) -> set[tuple[int, int]]:
    """Which sketches may be multiples of which row."""
    x, y, u, v = sketches[:, :4].T
    found = rows.near(x, y, u, v, ANGLE)
    return {pair for near, row in found for pair in zip(near.tolist(), row.tolist(), strict=True)}


@pytest.mark.parametrize("n_rows", [7, 400, 3000])
@pytest.mark.parametrize("first", [0, 2, 4], ids=["first plane", "second plane", "rest"])
@pytest.mark.parametrize("size", [-1e3, -1e-3, 1.0])
def test_what_is_within_the_angle_of_a_row_is_near_to_it_and_confirmed(n_rows: int, first: int, size: float) -> None:
    """What is left stands across the row, in two of its numbers alone."""
    rows = RowDirections(n_rows, 3, np.arange(n_rows), ANGLE)
    own, across = rows.sketcher, np.zeros((n_rows, OF_COEFFICIENTS))
    across[:, first], across[:, first + 1] = -own[:, first + 1], own[:, first]
    across *= (np.linalg.norm(own, axis=1) / np.linalg.norm(across, axis=1))[:, np.newaxis]
    every = np.arange(n_rows)
    for part in (-0.99 * ANGLE, 0.99 * ANGLE):
        sketches = size * (own + part * across)
        assert {(row, row) for row in range(n_rows)} <= candidates(rows, sketches)
        assert rows.confirmed(sketches, every, ANGLE, np.zeros(n_rows)) == set(range(n_rows))
        beyond = size * (own + part / 0.98 * across)
        assert rows.confirmed(beyond, every, ANGLE, np.zeros(n_rows)) == set()


def test_rows_with_the_same_features_are_one_in_a_sketch() -> None:
    """A vector with several of them, and of no other row, has what all of them have."""
    alike = np.arange(50)
    alike[[4, 9]] = 3
    found = Differences(50, 1, np.zeros((0, SKETCH)), set(), set(), alike)
    base = np.full(50, 0.02)
    found.take([base, base + 0.01 * np.isin(np.arange(50), [3, 9])])
    assert found.pairs == {3, 4, 9}


def test_another_seed_draws_other_sketches_and_the_same_one_the_same() -> None:
    """Whoever knew them could ask for sums of several rows that look like nothing."""
    one, again, other = (RowDirections(20, seed, np.arange(20), ANGLE).sketcher for seed in (1, 1, 2))
    assert np.array_equal(one, again) and not np.isclose(one[:, 2:], other[:, 2:]).any()
