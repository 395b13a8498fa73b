"""The least move of a score that bends: no move that is shorter loses the lead, and a small lead is lost just so."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import TransportNorm
from models.features.bent_move import bent_move
from models.geometry.norms import DUAL_NORM, steepest_move, vector_norm

NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")
DRAW = np.random.default_rng(0)
MIXED, SQUARES = DRAW.normal(size=(4, 4)), np.diag(DRAW.normal(size=4))
BENDS = {
    "mixed": MIXED + MIXED.T, "squares": SQUARES, "products": (MIXED + MIXED.T) * (1.0 - np.eye(4)),
    "none": np.zeros((4, 4)),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", BENDS)
def test_no_shorter_move_loses_the_lead(norm: TransportNorm, kind: str) -> None:
    draw, bends = np.random.default_rng(1), BENDS[kind]
    corners = np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 4), axis=-1).reshape(-1, 4)
    moves = np.vstack([draw.normal(size=(400, 4)), corners[np.abs(corners).sum(axis=1) > 0]])
    moves /= vector_norm(moves, norm)[:, None]
    for slopes in (np.zeros(4), 0.1 * np.abs(draw.normal(size=4)), np.abs(draw.normal(size=4))):
        for lead in (1e-6, 0.3, 20.0):
            least = bent_move(slopes[None, None], bends[None], np.array([[lead]]), norm)[0, 0]
            if np.isinf(least):
                assert kind == "none" and not slopes.any()
                continue
            ways = least * moves
            lost = np.abs(ways) @ slopes + np.abs(np.einsum("ni,ij,nj->n", ways, bends, ways))
            assert lost.max() <= lead * (1 + 1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_a_small_lead_is_lost_by_the_steepest_move_of_that_length(norm: TransportNorm) -> None:
    slopes = np.array([0.3, 2.0, 0.0, 1.1])
    least = float(bent_move(slopes[None, None], BENDS["mixed"][None], np.array([[1e-9]]), norm)[0, 0])
    assert float(slopes @ steepest_move(slopes, norm)) == pytest.approx(float(vector_norm(slopes, DUAL_NORM[norm])))
    assert least * float(slopes @ steepest_move(slopes, norm)) == pytest.approx(1e-9, rel=1e-6)
