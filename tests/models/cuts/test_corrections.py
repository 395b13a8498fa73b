"""Multipliers that are corrected: the nearest ones whose sum the norm carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from models.basics import TransportNorm
from models.cuts.corrections import corrected, normalised, uncovered
from models.cuts.cut_program import minimise
from models.geometry.norms import vector_norm
from models.problem import SiteProblem
from tests.models.cuts.asked import model_of

MakeSites = Callable[..., dict[str, SiteProblem]]


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_corrected_multipliers_are_the_nearest_that_the_norm_covers(
    make_sites: MakeSites, norm: TransportNorm, exactly: bool
) -> None:
    """Held to the least change over all rows, a column a site: slope, norm weight and every site's sum are met."""
    model = model_of(make_sites(norm=norm), np.random.default_rng(3).normal(size=(12, 5)))
    given = minimise(model, np.zeros(5)).multipliers
    cuts = 0.9 * given + 0.02 * np.random.default_rng(4).uniform(size=given.shape[0]) / given.shape[0]
    found = corrected(model, cuts, exactly)
    floors, (slope, norm_weight) = model.floors_left(cuts), model.weighted_sum(cuts)
    weights, sites = np.concatenate([cuts, floors]), np.eye(model.site_weights.shape[0])
    columns = np.column_stack([
        np.vstack([model.slope, np.zeros((sites.shape[0], 5))]), np.vstack([sites[model.site], sites]),
        np.concatenate([model.norm_weight, model.floor]),
    ])
    wanted = np.zeros(columns.shape[1])
    wanted[:5] = uncovered(model, slope, norm_weight)
    assert np.abs(wanted).max() > 1e-6
    roots = np.sqrt(weights)
    least = weights - roots * np.linalg.lstsq((columns * roots[:, None]).T, wanted, rcond=1e-14)[0]
    assert np.abs(least[: cuts.shape[0]] - cuts).max() > 1e-4
    np.testing.assert_allclose(found, normalised(model, least[: cuts.shape[0]]), atol=1e-10)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_what_the_norm_carries_is_measured_in_the_units_of_the_weights(
    make_sites: MakeSites, norm: TransportNorm
) -> None:
    """What is left is nothing where the norm carries all; else the rest is as much as it carries, and no more."""
    draw, units = np.random.default_rng(5), np.array([0.1, 1.0, 3.0, 20.0])
    model = replace(model_of(make_sites(norm=norm), np.zeros((1, 5))), feature_scale=units)
    for _ in range(10):
        slope = np.append(units * draw.normal(size=4), 0.3)
        size = float(vector_norm(slope[:4] / units, norm))
        assert not uncovered(model, slope, 1.001 * size)[:4].any()
        left = uncovered(model, slope, 0.6 * size)
        assert float(vector_norm((slope - left)[:4] / units, norm)) == pytest.approx(0.6 * size) and left[4] == 0.3
