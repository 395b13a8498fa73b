"""Where a norm is steepest: on its unit sphere, and as steep as its dual says, at weights of every size."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import TransportNorm
from models.geometry.norms import DUAL_NORM, dual_norm, steepest_move, vector_norm


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("size", [1e150, 1.0, 1e-120, 1e-139, 1e-141])
def test_the_steepest_move_is_as_steep_as_the_dual_norm_says(norm: TransportNorm, size: float) -> None:
    for weights in size * np.random.default_rng(0).normal(size=(20, 4)):
        move = steepest_move(weights, norm)
        assert float(vector_norm(move, norm)) == pytest.approx(1.0, rel=1e-15)
        assert float(weights @ move) == pytest.approx(dual_norm(weights, norm), rel=1e-14)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("size", [1e-155, 1e-170, 1e-300])
def test_weights_whose_squares_are_zero_have_the_move_of_their_shape(norm: TransportNorm, size: float) -> None:
    shape = np.array([3.0, -4.0, 0.5])
    assert steepest_move(size * shape, norm) == pytest.approx(steepest_move(shape, norm), rel=1e-14)


def test_zero_weights_have_no_move() -> None:
    assert not any(steepest_move(np.zeros(3), norm).any() for norm in DUAL_NORM)
