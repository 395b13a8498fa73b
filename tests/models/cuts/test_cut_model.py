"""Heights, slopes and sums of cuts, cut by cut: with norms in units of their own, swings, and norm parts below 0."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import FloatArray, TransportNorm
from models.cuts.cut_model import CutModel

NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")
ORDER = {"l1": np.inf, "l2": 2, "linf": 1}
"""Of the dual norm."""


def drawn(norm: TransportNorm, swings: bool) -> CutModel:
    """Cuts of three sites in no order; WAFL's have norm parts below 0, where flips pay for the price."""
    random = np.random.default_rng(7)
    return CutModel(
        np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.0, 0.4]), random.integers(0, 3, 12), random.normal(size=12),
        random.normal(size=(12, 4)), random.uniform(-0.4, 0.4, 12), norm, 3, feature_scale=np.array([0.5, 1.0, 3.0]),
        swing=random.random((12, 3)) if swings else None,
    )


def heights(model: CutModel, point: FloatArray) -> list[float]:
    norm = float(np.linalg.norm(point[:3] * model.units, ORDER[model.transport_norm]))
    return [
        float(model.offset[j] + model.slope[j] @ point + model.norm_weight[j] * norm
              + model.swings[j] @ np.abs(point[:3]))
        for j in range(12)
    ]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("swings", [False, True])
def test_a_site_is_as_high_as_its_highest_cut_or_its_floor(norm: TransportNorm, swings: bool) -> None:
    model, points = drawn(norm, swings), np.random.default_rng(8).normal(size=(20, 4))
    found, values = model.heights(points), model.site_values(points)
    for k, point in enumerate(points):
        expected = heights(model, point)
        np.testing.assert_allclose(found[k], expected, rtol=1e-12, atol=1e-12)
        own = float(np.linalg.norm(point[:3] * model.units, ORDER[norm]))
        for g in range(3):
            top = max([own * model.floor[g], *[expected[j] for j in range(12) if model.site[j] == g]])
            assert values[k, g] == pytest.approx(top, rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("swings", [False, True])
def test_slopes_of_the_sites_are_those_of_the_cuts_that_make_them(norm: TransportNorm, swings: bool) -> None:
    """A swing turns with the signs of the weights, and a floor has no slope."""
    model = drawn(norm, swings)
    for point in np.random.default_rng(9).normal(size=(20, 4)):
        slopes, norm_weights = model.site_slopes(point)
        expected, own = heights(model, point), float(np.linalg.norm(point[:3] * model.units, ORDER[norm]))
        for g in range(3):
            j = max((j for j in range(12) if model.site[j] == g), key=lambda j: expected[j])
            is_cut = expected[j] > own * model.floor[g]
            way = model.slope[j] + np.append(model.swings[j] * np.sign(point[:3]), 0.0)
            np.testing.assert_allclose(slopes[g], way if is_cut else np.zeros(4), atol=1e-12)
            assert norm_weights[g] == (model.norm_weight[j] if is_cut else model.floor[g])
