"""The shortest move inside a box: linear programs for l1 and l-inf, a root for l2, and boxes that just hold it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, linprog

from models.basics import FloatArray, TransportNorm
from models.geometry.least_move import least_move

NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")


def shortest(slope: FloatArray, room: FloatArray, lead: float, norm: TransportNorm) -> float:
    """The same for one row that holds the move, by another way."""
    n = slope.size
    if norm == "l1":
        found = linprog(np.ones(n), -slope[None], [-lead], bounds=list(zip(np.zeros(n), room, strict=True)))
        return float(found.fun)
    if norm == "linf":
        rows = np.vstack([np.append(-slope, 0.0), np.hstack([np.eye(n), -np.ones((n, 1))])])
        bounds = [*zip(np.zeros(n), room, strict=True), (0.0, None)]
        return float(linprog(np.eye(n + 1)[n], rows, np.append(-lead, np.zeros(n)), bounds=bounds).fun)
    far = 2.0 * float(np.max(room[slope > 0] / slope[slope > 0]))
    t = brentq(lambda t: slope @ np.minimum(room, t * slope) - lead, 0.0, far, xtol=1e-14)
    return float(np.linalg.norm(np.minimum(room, t * slope)))


@pytest.mark.parametrize("norm", NORMS)
def test_it_is_what_another_solver_finds(norm: TransportNorm) -> None:
    """Features without slope, and without room, among them."""
    random = np.random.default_rng(0)
    slope, room = random.uniform(size=(12, 5)), random.uniform(0.1, 2.0, size=(12, 5))
    slope[:4, 1], room[2:6, 3] = 0.0, 0.0
    most = (slope * room).sum(axis=1)
    lead = random.uniform(0.02, 0.98, 12) * most
    found = least_move(slope, room, lead, norm)
    expected = [shortest(*row, norm) for row in zip(slope, room, lead, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert np.isinf(least_move(slope, room, 1.001 * most, norm)).all()
    assert (least_move(slope, room, 0.0 * most, norm) == 0.0).all()


@pytest.mark.parametrize("norm", NORMS)
def test_a_box_that_just_holds_the_move_holds_it(norm: TransportNorm) -> None:
    """Sums in another order do not deny it; a box that misses it by 1e-9 of it does."""
    random = np.random.default_rng(1)
    slope, room = random.uniform(0.1, 1.0, size=(200, 7)), random.uniform(0.1, 1.0, size=(200, 7))
    most = np.array([sum(reversed(row.tolist())) for row in slope * room])
    assert np.isfinite(least_move(slope, room, most, norm)).all()
    whole = {"l1": room.sum(axis=1), "l2": np.linalg.norm(room, axis=1), "linf": room.max(axis=1)}[norm]
    np.testing.assert_allclose(least_move(slope, room, most, norm), whole, rtol=1e-12)
    assert np.isinf(least_move(slope, room, most * (1.0 + 1e-9), norm)).all()


def test_nothing_moves_where_nothing_has_a_slope_or_room() -> None:
    flat, one = np.zeros((1, 2)), np.ones((1, 2))
    for norm in NORMS:
        assert least_move(flat, one, np.ones(1), norm) == np.inf
        assert least_move(one, flat, np.ones(1), norm) == np.inf
        assert least_move(flat, flat, np.zeros(1), norm) == 0.0
