"""The random Fourier lift: the same everywhere, inside its box, a Gaussian kernel in the mean."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError, TransportNorm
from models.features.fourier import FourierLift, fourier_lift
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


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("keep_linear", [True, False])
def test_no_lead_is_lost_nearer_than_said_and_not_much_farther(norm: TransportNorm, keep_linear: bool) -> None:
    draw, lift = np.random.default_rng(11), fourier_lift(2, 40, bandwidth=0.3, seed=5, keep_linear=keep_linear)
    line = np.linspace(-0.2, 1.2, 281)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    rows = grid[draw.integers(0, len(grid), 60)]
    slopes = draw.normal(size=(4, lift.n_outputs))
    heights, known = lift.apply(grid) @ slopes.T, lift.apply(rows) @ slopes.T
    levels = np.quantile(heights, 0.3, axis=0)
    leads = np.maximum(known - levels, 0.0)
    least, shares = lift.least_move(slopes, rows, leads, norm), list[float]()
    assert least.shape == (60, 4) and not least[leads == 0.0].any()
    for i, r in zip(*np.nonzero(leads), strict=True):
        nearest = vector_norm(grid[heights[:, r] <= levels[r]] - rows[i], norm).min()
        assert least[i, r] <= nearest
        shares.append(least[i, r] / nearest)
    assert len(shares) > 50 and np.median(shares) > 0.3
    plain = leads / lift.steepness(slopes, norm)
    assert np.median((least / np.maximum(plain, 1e-12))[leads > 0.0]) > 2.0


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_small_lead_is_lost_where_it_is_said(norm: TransportNorm) -> None:
    draw, lift = np.random.default_rng(13), fourier_lift(3, 30, bandwidth=0.3, seed=2)
    rows, slopes = draw.uniform(size=(20, 3)), draw.normal(size=(2, lift.n_outputs))
    found = lift.least_move(slopes, rows, np.full((20, 2), 1e-7), norm)
    for r in range(2):
        gradient = lift.gradient(rows, np.repeat(slopes[r : r + 1], 20, axis=0))
        np.testing.assert_allclose(found[:, r], 1e-7 / vector_norm(gradient, DUAL_NORM[norm]), rtol=1e-4)
    assert (lift.least_move(0.0 * slopes, rows, np.ones((20, 2)), norm) == np.inf).all()
    with pytest.raises(ProblemError, match="takes features"):
        lift.least_move(slopes, rows[:, :2], np.ones((20, 2)), norm)


@pytest.mark.parametrize(("norm", "steepness"), [("l2", 5.0), ("l1", 4.0), ("linf", 7.0)])
def test_at_the_crest_of_a_wave_its_bend_alone_says_how_far_a_small_lead_reaches(
    norm: TransportNorm, steepness: float
) -> None:
    """``1/2 - cos(t) / 2`` is ``t^2 / 4`` there, t the length of the move times its steepness."""
    lift = FourierLift(np.array([[3.0, 4.0]]), np.zeros(1), seed=0, bandwidth=1.0, keep_linear=False)
    found = lift.least_move(np.ones((1, 1)), np.array([[0.5, 0.5]]), np.array([[1e-4]]), norm)
    assert found[0, 0] == pytest.approx(2.0 * 1e-2 / steepness, rel=1e-9)
