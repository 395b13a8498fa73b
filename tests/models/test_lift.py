"""The random Fourier lift: the same everywhere, inside its box, a Gaussian kernel in the mean."""

from __future__ import annotations

import numpy as np
import pytest

from models.lift import check_same_lift, fourier_lift
from models.problem import ProblemError


def test_same_seed_same_lift() -> None:
    first, second = (fourier_lift(3, 50, bandwidth=0.5, seed=7) for _ in range(2))
    rows = np.random.default_rng(0).uniform(0, 1, (20, 3))
    np.testing.assert_array_equal(first.apply(rows), second.apply(rows))
    assert first.fingerprint == second.fingerprint
    others = [
        fourier_lift(3, 50, bandwidth=0.5, seed=8),
        fourier_lift(3, 51, bandwidth=0.5, seed=7),
        fourier_lift(3, 50, bandwidth=0.6, seed=7),
        fourier_lift(3, 50, bandwidth=0.5, seed=7, keep_linear=False),
    ]
    assert len({first.fingerprint, *(other.fingerprint for other in others)}) == 5


def test_stays_in_its_box() -> None:
    lift = fourier_lift(3, 50, bandwidth=0.2, seed=1)
    rows = np.random.default_rng(0).uniform(0, 1, (200, 3))
    lifted = lift.apply(rows)
    assert lifted.shape == (200, lift.n_outputs) == (200, 53)
    assert (lifted >= lift.support.low).all() and (lifted <= lift.support.high).all()
    np.testing.assert_array_equal(lifted[:, :3], rows)


def test_approximates_the_gaussian_kernel() -> None:
    lift = fourier_lift(2, 20_000, bandwidth=0.4, seed=3, keep_linear=False)
    rows = np.random.default_rng(0).uniform(0, 1, (10, 2))
    waves = 2 * lift.apply(rows) - 1
    squares = ((rows[:, None] - rows[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(2 * waves @ waves.T / 20_000, np.exp(-squares / (2 * 0.4**2)), atol=0.03)


def test_refusals() -> None:
    for arguments in ((0, 5, 1.0, 0), (3, 0, 1.0, 0), (3, 5, 0.0, 0), (3, 5, float("nan"), 0), (3, 5, 1.0, -1)):
        with pytest.raises(ProblemError):
            fourier_lift(arguments[0], arguments[1], bandwidth=arguments[2], seed=arguments[3])
    with pytest.raises(ProblemError, match=r"takes features \(n, 3\)"):
        fourier_lift(3, 5, bandwidth=1.0, seed=0).apply(np.zeros((2, 4)))
    with pytest.raises(ProblemError, match="sites a and c lift their features differently"):
        check_same_lift({"a": "x", "b": "x", "c": "y"})
    check_same_lift({"a": "x", "b": "x"})
