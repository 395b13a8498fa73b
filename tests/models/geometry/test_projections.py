"""Nearest points: in the ball of a norm, and the least change of weights of unlike sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import TransportNorm
from models.geometry.norms import vector_norm
from models.geometry.projections import least_change, least_where, nearest_in_ball


@settings(max_examples=100, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), radius=st.floats(0, 3), norm=st.sampled_from(["l1", "l2", "linf"]))
def test_nearest_in_ball(seed: int, radius: float, norm: TransportNorm) -> None:
    random = np.random.default_rng(seed)
    vector = random.normal(size=4)
    nearest = nearest_in_ball(vector, radius, norm)
    assert vector_norm(nearest, norm) <= radius * (1 + 1e-12) + 1e-15
    for _ in range(20):
        other = random.normal(size=4)
        other *= radius / vector_norm(other, norm)
        # The projection is the point from which the whole ball lies behind.
        assert (vector - nearest) @ (other - nearest) <= 1e-9


@pytest.mark.parametrize(
    ("vector", "nearest"), [([5.0, 0.1], [1.0, 0.0]), ([-1.2, 1.0], [-0.6, 0.4]), ([0.4, -0.6], [0.4, -0.6])]
)
def test_nearest_in_the_ball_of_l1_by_hand(vector: list[float], nearest: list[float]) -> None:
    np.testing.assert_allclose(nearest_in_ball(np.array(vector), 1.0, "l1"), nearest, atol=1e-12)


def test_the_least_change_does_what_is_asked_and_no_other_that_does_is_less() -> None:
    random = np.random.default_rng(3)
    rows, sizes = random.normal(size=(6, 2)), random.uniform(0.1, 2.0, 6)
    change = random.normal(size=2)
    found = least_change(rows, sizes, change)
    np.testing.assert_allclose(rows.T @ (sizes * found), change, atol=1e-9)
    kept = np.linalg.svd((rows * sizes[:, None]).T)[2][2:]  # what changes nothing
    np.testing.assert_allclose(kept @ (sizes * found), 0.0, atol=1e-9)


def test_directions_that_the_rows_do_not_reach_are_left_out() -> None:
    random = np.random.default_rng(7)
    for width in (3, 5, 8):
        column, sizes, change = random.normal(size=30), random.uniform(0.1, 2.0, 30), random.normal(size=width)
        found = least_change(np.tile(column[:, None], width), sizes, change)
        # All columns alike: what they can change is the same everywhere, so the mean of what is asked.
        np.testing.assert_allclose(found, change.mean() * column / (sizes @ column**2), atol=1e-12)


def test_the_least_where_it_holds_is_found() -> None:
    assert least_where(lambda at: at >= 0.3, 0.0, 1.0) == pytest.approx(0.3, abs=1e-9)
    assert least_where(lambda at: True, 0.0, 1.0) == pytest.approx(0.0, abs=1e-9)
    for least in (0.3, 3e-15, 7e5):
        assert least_where(least.__le__, 0.0, 4.0 * least) == least, "to the last bit"
