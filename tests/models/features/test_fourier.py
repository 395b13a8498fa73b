"""The random Fourier lift: the same everywhere, inside its box, a Gaussian kernel in the mean."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError, TransportNorm
from models.features.fourier import fourier_lift
from models.geometry.norms import DUAL_NORM, vector_norm


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


@pytest.mark.parametrize("keep_linear", [True, False])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_gradient_steepness_and_lipschitz_constant(norm: TransportNorm, keep_linear: bool) -> None:
    draw = np.random.default_rng(4)
    lift = fourier_lift(3, 12, bandwidth=0.3, seed=2, keep_linear=keep_linear)
    rows, slopes = draw.uniform(size=(300, 3)), draw.normal(size=(300, lift.n_outputs))
    gradient = lift.gradient(rows, slopes)
    for k, step in enumerate(1e-6 * np.eye(3)):
        rise = ((lift.apply(rows + step) - lift.apply(rows - step)) * slopes).sum(axis=1) / 2e-6
        np.testing.assert_allclose(gradient[:, k], rise, atol=1e-6)
    assert (vector_norm(gradient, DUAL_NORM[norm]) <= lift.steepness(slopes, norm)).all()
    moves = draw.normal(size=(300, 3)) * draw.uniform(0, 0.5, (300, 1))
    far = vector_norm(lift.apply(rows + moves) - lift.apply(rows), norm)
    assert (far <= lift.lipschitz(norm) * vector_norm(moves, norm) + 1e-12).all()
    assert (lift.steepness(slopes, norm) <= lift.lipschitz(norm) * vector_norm(slopes, DUAL_NORM[norm]) + 1e-12).all()


@pytest.mark.parametrize("keep_linear", [True, False])
@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", np.inf)])
def test_the_lipschitz_constant_is_the_norm_of_the_steepest_waves_beside_the_features(
    norm: TransportNorm, order: float, keep_linear: bool
) -> None:
    lift = fourier_lift(3, 12, bandwidth=0.3, seed=2, keep_linear=keep_linear)
    jacobian = np.vstack([np.eye(3) if keep_linear else np.zeros((0, 3)), 0.5 * lift.frequencies])
    assert lift.lipschitz(norm) == pytest.approx(np.linalg.norm(jacobian, ord=order))


def test_the_steepness_of_one_wave_is_attained() -> None:
    lift = fourier_lift(2, 1, bandwidth=0.05, seed=1, keep_linear=False)
    rows = np.stack(np.meshgrid(*[np.linspace(0, 1, 400)] * 2), axis=-1).reshape(-1, 2)
    steepest = vector_norm(lift.gradient(rows, np.ones((rows.shape[0], 1))), "l2").max()
    assert steepest == pytest.approx(lift.steepness(np.ones((1, 1)), "l2")[0], rel=1e-3)


def test_refusals() -> None:
    for arguments in ((0, 5, 1.0, 0), (3, 0, 1.0, 0), (3, 5, 0.0, 0), (3, 5, float("nan"), 0), (3, 5, 1.0, -1)):
        with pytest.raises(ProblemError):
            fourier_lift(arguments[0], arguments[1], bandwidth=arguments[2], seed=arguments[3])
    with pytest.raises(ProblemError, match=r"takes features \(n, 3\)"):
        fourier_lift(3, 5, bandwidth=1.0, seed=0).apply(np.zeros((2, 4)))
    with pytest.raises(ProblemError, match="slopes must have length 8, got 4"):
        fourier_lift(3, 5, bandwidth=1.0, seed=0).steepness(np.zeros((2, 4)), "l2")
