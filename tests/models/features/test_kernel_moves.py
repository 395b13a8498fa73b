"""How far a reading must move under the lifts of a kernel before a lead is lost: by slopes at the row and the bend."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError, TransportNorm
from models.features.fourier import FourierLift, fourier_lift
from models.features.kernel_lift import KernelLift
from models.features.nystrom import drawn_points, nystrom_lift
from models.geometry.norms import DUAL_NORM, vector_norm

NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")


def lift_of(kind: str, n_features: int) -> KernelLift:
    alone = kind.endswith("alone")
    if kind.startswith("waves"):
        return fourier_lift(n_features, 40, bandwidth=0.3, seed=5, keep_linear=not alone)
    return nystrom_lift(drawn_points(n_features, 25, 4), bandwidth=0.3, keep_linear=not alone)


KINDS = ("waves", "waves alone", "bumps", "bumps alone")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_lead_is_lost_nearer_than_said_and_not_much_farther(kind: str, norm: TransportNorm) -> None:
    draw, lift = np.random.default_rng(11), lift_of(kind, 2)
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
    assert np.median((least / np.maximum(plain, 1e-12))[leads > 0.0]) > (1.5 if kind == "bumps" else 2.0)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_small_lead_is_lost_where_it_is_said(kind: str, norm: TransportNorm) -> None:
    draw, lift = np.random.default_rng(13), lift_of(kind, 3)
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


def test_the_bend_of_bumps_is_attained_where_they_are_a_second_difference() -> None:
    """The steepest change of slope for its size is that of the kernel's own second derivative."""
    points = np.array([[0.45], [0.5], [0.55]])
    lift = nystrom_lift(points, bandwidth=0.3, keep_linear=False)
    slopes = np.linalg.solve(lift.whitening, np.array([1.0, -2.0, 1.0]))[None]
    step, middle = 1e-3, np.array([[0.5]])
    heights = [float((lift.apply(middle + move) @ slopes[0])[0]) for move in (-step, 0.0, step)]
    bend = 0.5 * abs(heights[0] - 2.0 * heights[1] + heights[2]) / step**2
    assert 0.97 * lift.bends(slopes)[0, 0, 0] < bend <= lift.bends(slopes)[0, 0, 0]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bandwidth", [1e-100, 1e100])
def test_all_is_a_number_up_to_the_ends_of_the_bandwidths(bandwidth: float, norm: TransportNorm) -> None:
    rows = np.random.default_rng(17).uniform(size=(5, 2))
    for lift in (fourier_lift(2, 6, bandwidth=bandwidth, seed=1), nystrom_lift(rows[:3], bandwidth=bandwidth)):
        slopes = np.ones((1, lift.n_outputs))
        assert np.isfinite(lift.apply(rows)).all() and np.isfinite(lift.lipschitz(norm))
        assert np.isfinite(lift.steepness(slopes, norm)).all() and np.isfinite(lift.bends(slopes)).all()
        assert (lift.least_move(slopes, rows, np.ones((5, 1)), norm) > 0.0).all()
    for beyond in (0.99 * bandwidth if bandwidth < 1.0 else 1.01 * bandwidth, 0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ProblemError, match="bandwidth must lie between 1e-100 and"):
            fourier_lift(2, 6, bandwidth=beyond, seed=1)
        with pytest.raises(ProblemError, match="bandwidth must lie between 1e-100 and"):
            nystrom_lift(rows, bandwidth=beyond)
