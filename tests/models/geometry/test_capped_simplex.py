"""Capped simplices at the edge of being empty, and what the projection on them leaves alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.geometry.capped_simplex import CappedSimplex
from models.geometry.projections import fill


def test_caps_that_fall_short_of_one_by_rounding_are_lifted_and_by_more_are_refused() -> None:
    caps = CappedSimplex(np.array([0.5, 0.3, 0.2 - 5e-10]))
    for member in (caps.worst(np.arange(3.0)), caps.best(np.arange(3.0)), caps.nearest(np.arange(3.0))):
        assert float(member.sum()) == pytest.approx(1.0, abs=1e-14)
    for missing in (2e-9, 5e-3):
        with pytest.raises(ProblemError, match="the capped simplex is empty: the caps must sum to at least 1"):
            CappedSimplex(np.array([0.5, 0.3, 0.2 - missing]))


@pytest.mark.parametrize(("share", "mean"), [
    (1.0, 3.0), (0.8, 3.5), (0.5, 4.2), (0.3, (5.0 + 0.5 * 4.0) / 1.5), (0.2, 5.0), (0.1, 5.0), (1e-6, 5.0),
])
def test_the_worst_over_a_share_of_the_sites_is_their_mean_with_a_fraction_of_the_one_on_its_border(
    share: float, mean: float
) -> None:
    assert CappedSimplex.of_share(5, share).largest(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(mean)


@settings(max_examples=60, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 9))
def test_what_is_at_a_bound_stays_there_to_the_last_bit(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    values, caps = random.normal(size=n), random.uniform(0.9 / n, 2.0 / n, n)
    caps *= max(1.0, 1.02 / caps.sum())
    nearest = fill(values, np.zeros(n), caps, 1.0)
    assert float(nearest.sum()) == pytest.approx(1.0, abs=4e-16 * n)
    inside = (nearest > 1e-12) & (nearest < caps - 1e-12)
    if inside.any():
        level = float((values - nearest)[inside].mean())
        np.testing.assert_allclose(nearest, np.clip(values - level, 0.0, caps), atol=1e-14)
        assert (nearest[values - level < -1e-12] == 0.0).all()
        assert (nearest == caps)[values - level > caps + 1e-12].all()


def test_a_number_added_to_all_values_changes_no_projection() -> None:
    values = np.array([3, -40, 250, 700, 130, 515]) / 1024  # with 2^40 added, all are still exact
    near = fill(values, np.zeros(6), np.full(6, 0.4), 1.0)
    np.testing.assert_allclose(fill(values + 2.0**40, np.zeros(6), np.full(6, 0.4), 1.0), near, atol=1e-14)
