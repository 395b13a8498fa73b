"""The illustrations: the sums of distances that the paper prints, and the corners of Lambda by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.papers.relative_fairness.figures12 import OBJECTIVES, PRINTED_SUMS, corners, distances, solve


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_sums_of_distances_are_the_printed_ones(name: str) -> None:
    assert float(distances(solve(name)).sum()) == pytest.approx(PRINTED_SUMS[name], abs=5e-4)


def test_without_phi_the_set_is_a_triangle_and_with_it_some_weights_are_negative() -> None:
    plain = corners(0.0)
    assert plain.max() == pytest.approx(2 / 3) and plain.min() >= 0.0
    wide = corners(0.5)
    np.testing.assert_allclose(wide.sum(axis=1), 1.0)
    assert wide.min() == pytest.approx((0.0 - 0.5 * 2 / 3) / 0.5)
    assert wide.max() == pytest.approx((2 / 3 - 0.5 * 0.0) / 0.5)
