"""The least move against broken lines: never too long, and near the shortest that a search finds."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import FloatArray, TransportNorm
from models.geometry.least_move import least_move
from models.geometry.norms import vector_norm
from models.geometry.separable_move import separable_move

NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")


def fallen(knots: FloatArray, heights: FloatArray, start: FloatArray, ends: FloatArray) -> FloatArray:
    """What the lines (P, S + 1) fall by from a point (P,) to each of the ends (n, P)."""
    drops = [np.interp(start[j], knots, line) - np.interp(ends[:, j], knots, line) for j, line in enumerate(heights)]
    return np.asarray(np.sum(drops, axis=0))


@pytest.mark.parametrize("norm", NORMS)
def test_one_segment_is_the_move_inside_a_box(norm: TransportNorm) -> None:
    draw = np.random.default_rng(1)
    slopes, points, lead = draw.normal(size=6), draw.uniform(size=(40, 6)), draw.uniform(0, 4, 40)
    lead[:3] = 0.0
    heights = np.stack([np.zeros(6), slopes], axis=1)[None]
    found = separable_move(np.tile([0.0, 1.0], (6, 1)), heights, points, lead[:, None], norm)[:, 0]
    room = np.where(slopes > 0, points, 1.0 - points)
    exact = least_move(np.broadcast_to(np.abs(slopes), points.shape), room, lead, norm)
    np.testing.assert_array_equal(np.isinf(found), np.isinf(exact))
    assert 0 < np.isinf(exact).sum() < 40
    ends = np.isfinite(exact)
    np.testing.assert_allclose(found[ends], exact[ends], rtol=1e-6)
    assert (found[ends] <= exact[ends] * (1 + 1e-12)).all()


@pytest.mark.parametrize("norm", NORMS)
def test_in_the_plane_it_is_what_a_fine_grid_finds(norm: TransportNorm) -> None:
    draw, line = np.random.default_rng(2), np.linspace(0.0, 1.0, 401)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    knots, shares = np.linspace(0.0, 1.0, 6), list[float]()
    for _ in range(15):
        heights = np.cumsum(draw.normal(size=(2, 6)), axis=1)
        points = draw.uniform(size=(6, 2))
        most = [fallen(knots, heights, point, grid).max() for point in points]
        lead = draw.uniform(0.05, 1.1, 6) * most
        found = separable_move(np.tile(knots, (2, 1)), heights[None], points, lead[:, None], norm)[:, 0]
        for point, wanted, radius in zip(points, lead, found, strict=True):
            there = fallen(knots, heights, point, grid) >= wanted
            if not there.any():  # all the lines can fall by, at knots, which the grid has
                assert np.isinf(radius)
                continue
            shortest = vector_norm(grid[there] - point, norm).min()
            assert radius <= shortest
            if shortest > 0.05:
                shares.append(radius / shortest)
    assert len(shares) > 36 and np.median(shares) > 0.98 and min(shares) > 0.88  # the grid itself is 0.005 off


def attacked(
    knots: FloatArray, heights: FloatArray, point: FloatArray, lead: float, norm: TransportNorm,
    draw: np.random.Generator,
) -> float:
    """Length of the shortest move that a search finds: many directions and knots, cut back as far as they hold."""
    n = len(point)
    signs = draw.choice([-1.0, 0.0, 1.0], (600, n))
    walls = np.where(draw.uniform(size=(600, n)) < 0.4, knots[draw.integers(0, len(knots), (600, n))], point)
    ends = np.vstack([np.clip(point + draw.uniform(0, 1, (600, 1)) * signs, 0, 1), walls, draw.uniform(size=(600, n))])
    ends = ends[fallen(knots, heights, point, ends) >= lead]
    for _ in range(12):  # coordinate by coordinate back to the point, as far as the fall stays
        for j in draw.permutation(n):
            low = np.zeros(len(ends))
            for share in (1.0, 0.5, 0.25, 0.1, 0.02):
                tried = ends.copy()
                tried[:, j] += np.minimum(low + share, 1.0) * (point[j] - ends[:, j])
                holds = fallen(knots, heights, point, tried) >= lead
                low = np.where(holds & (low == 0.0), share, low)
            ends[:, j] += low * (point[j] - ends[:, j])
    if norm == "linf":  # each coordinate the best place of many within t, for many t
        places = np.linspace(0.0, 1.0, 2001)
        for t in np.linspace(0.0, 1.0, 201):
            near = [np.append(places[np.abs(places - at) <= t], at) for at in point]
            best = [tried[np.argmin(np.interp(tried, knots, line))] for tried, line in zip(near, heights, strict=True)]
            if fallen(knots, heights, point, np.array([best]))[0] >= lead:
                return min(t, float(vector_norm(ends - point, norm).min()) if len(ends) else np.inf)
    return float(vector_norm(ends - point, norm).min()) if len(ends) else np.inf


@pytest.mark.parametrize("norm", NORMS)
def test_no_attack_in_more_dimensions_is_shorter(norm: TransportNorm) -> None:
    draw, knots, shares = np.random.default_rng(3), np.linspace(0.0, 1.0, 5), list[float]()
    for _ in range(12):
        lines = np.cumsum(draw.normal(size=(2, 5, 5)), axis=2)
        points = draw.uniform(size=(3, 5))
        lead = draw.uniform(0.1, 4.0, (3, 2))
        found = separable_move(np.tile(knots, (5, 1)), lines, points, lead, norm)
        for i, point in enumerate(points):
            tries = [attacked(knots, lines[r], point, lead[i, r], norm, draw) for r in range(2)]
            assert (found[i] <= np.array(tries) * (1 + 1e-9)).all()
            if np.isfinite(min(tries)) and min(tries) > 0:
                shares.append(found[i].min() / min(tries))
    assert len(shares) > 20 and np.median(shares) > 0.85  # the search itself is coarse


def test_the_least_answer_of_a_row_does_not_hang_on_the_others() -> None:
    draw, knots = np.random.default_rng(4), np.linspace(0.0, 1.0, 7)
    lines, points = np.cumsum(draw.normal(size=(4, 3, 7)), axis=2), draw.uniform(size=(30, 3))
    lead = draw.uniform(0.1, 2.0, (30, 4))
    wide = np.tile(knots, (3, 1))
    for norm in NORMS:
        together = separable_move(wide, lines, points, lead, norm)
        alone = np.hstack([separable_move(wide, lines[[r]], points, lead[:, [r]], norm) for r in range(4)])
        np.testing.assert_allclose(together.min(axis=1), alone.min(axis=1), rtol=0.03)


@pytest.mark.parametrize("norm", NORMS)
def test_rounding_denies_no_move_that_loses_just_the_lead(norm: TransportNorm) -> None:
    """A lead is a difference of two scores, summed up in another order than the lines fall."""
    draw, knots = np.random.default_rng(5), np.linspace(0.0, 1.0, 5)
    for _ in range(20):
        lines, point = np.cumsum(draw.normal(size=(4, 5)), axis=1), draw.uniform(size=4)
        lowest = knots[lines.argmin(axis=1)]
        lead = float(fallen(knots, lines, point, lowest[None])[0]) * (1.0 + 1e-14)
        found = separable_move(np.tile(knots, (4, 1)), lines[None], point[None], np.array([[lead]]), norm)[0, 0]
        assert found <= float(vector_norm(lowest - point, norm)) * (1.0 + 1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_many_points_have_the_answers_of_each(norm: TransportNorm, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are worked on some at once, as many as memory allows for; the last ones may be fewer."""
    draw, knots = np.random.default_rng(5), np.tile(np.linspace(0.0, 1.0, 6), (4, 1))
    heights, points, lead = draw.normal(size=(2, 4, 6)), draw.uniform(size=(5, 4)), draw.uniform(0.1, 1.0, (5, 2))
    alone = np.vstack([
        separable_move(knots, heights, points[k : k + 1], lead[k : k + 1], norm) for k in range(len(points))
    ])
    monkeypatch.setattr("models.geometry.separable_move._AT_ONCE", 2 * heights.size)
    np.testing.assert_array_equal(separable_move(knots, heights, points, lead, norm), alone)
