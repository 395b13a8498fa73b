"""The smallest change that changes a diagnosis, against a fine grid of all changes in the plane."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import FloatArray, TransportNorm
from models.evaluation.robustness_radius import robustness_radius
from models.geometry.norms import vector_norm
from models.geometry.supports import BoxSupport
from models.multiclass import predict_class

NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")
STEP = 1.0 / 200
GRID = np.stack(np.meshgrid(*[np.arange(-1.0, 2.0 + STEP / 2, STEP)] * 2), axis=-1).reshape(-1, 2)
BOX = BoxSupport(np.array([0.0, 0.2]), np.array([1.0, 0.9]))


def shortest(planes: FloatArray, row: FloatArray, places: FloatArray, norm: TransportNorm) -> float:
    """Length of the shortest way from a row (P,) to one of the places (n, P) that is diagnosed otherwise."""
    other = places[predict_class(planes, places) != predict_class(planes, row[None])[0]]
    return float(vector_norm(other - row, norm).min(initial=np.inf))


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("norm", NORMS)
def test_without_walls_it_is_the_nearest_place_of_another_class(norm: TransportNorm, heads: int) -> None:
    draw = np.random.default_rng(heads)
    for _ in range(3):
        planes = draw.normal(size=(heads, 3))
        planes[:, -1] = -planes[:, :-1].sum(axis=1) / 2 + 0.2 * draw.normal(size=heads)
        rows = draw.uniform(size=(8, 2))
        for row, radius in zip(rows, robustness_radius(planes, rows, norm), strict=True):
            nearest = shortest(planes, row, GRID, norm)
            if nearest < 0.9:  # the grid ends there
                assert nearest - 3 * STEP <= radius <= nearest


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("norm", NORMS)
def test_in_a_box_it_is_the_nearest_of_its_places_and_a_row_outside_does_not_go_farther_out(
    norm: TransportNorm, heads: int
) -> None:
    draw, endless = np.random.default_rng(10 + heads), 0
    for _ in range(6):
        planes = draw.normal(size=(heads, 3))
        planes[:, -1] = -planes[:, :-1].sum(axis=1) / 2 + 0.6 * draw.normal(size=heads)
        rows = np.vstack([draw.uniform(BOX.low, BOX.high, (4, 2)), draw.uniform(-0.3, 1.3, (5, 2))])
        for row, radius in zip(rows, robustness_radius(planes, rows, norm, support=BOX), strict=True):
            low, high = np.minimum(BOX.low, row), np.maximum(BOX.high, row)
            axes = [np.append(np.arange(a, b, STEP), [b, at]) for a, b, at in zip(low, high, row, strict=True)]
            nearest = shortest(planes, row, np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2), norm)
            endless += np.isinf(nearest)
            assert (np.isinf(radius) and np.isinf(nearest)) or nearest - 3 * STEP <= radius <= nearest
    assert endless > 0
