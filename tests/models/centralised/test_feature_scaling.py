"""Units of the weights: scores and slopes are the same in both, whatever the features are measured in."""

from __future__ import annotations

import numpy as np
import pytest

from models.centralised.feature_scaling import Units
from models.problem import RobustSpec, SiteProblem

INTERCEPTS = pytest.mark.parametrize("intercept", [True, False])


def sites(intercept: bool, radii: tuple[float, float] = (0.3, 2.0), scale: float = 1.0) -> list[SiteProblem]:
    """Two sites of unlike size with features of unlike sizes, one of which is the same for all rows."""
    random, found = np.random.default_rng(5), []
    for count, radius in zip((7, 12), radii, strict=True):
        x = np.column_stack([50.0 + 10.0 * random.normal(size=count), random.normal(size=count), np.full(count, 3.0)])
        spec = RobustSpec(radius, 1.0, "l2", fit_intercept=intercept)
        found.append(SiteProblem(scale * x, random.choice([-1.0, 1.0], count), spec))
    return found


@INTERCEPTS
def test_scores_and_slopes_are_those_of_the_features_as_given(intercept: bool) -> None:
    given, random = sites(intercept), np.random.default_rng(0)
    units = Units.of(given)
    point, slope = random.normal(size=(2, 3 + intercept))
    before, plane, turned = point.copy(), units.back(point), units.slope(slope)
    x = np.vstack([site.features for site in given])
    scores = (x - units.centre) / units.spread @ point[:3] + (point[3] if intercept else 0.0)
    np.testing.assert_allclose(x @ plane[:3] + (plane[3] if intercept else 0.0), scores, atol=1e-12)
    # <slope, back(v)> is linear in v.
    assert turned @ point == pytest.approx(slope @ plane)
    assert (point == before).all()


@INTERCEPTS
def test_spreads_are_of_all_rows_about_their_centre_and_as_wide_as_the_widest_ball(intercept: bool) -> None:
    given = sites(intercept)
    x, units = np.vstack([site.features for site in given]), Units.of(given)
    centre = x.mean(axis=0) if intercept else np.zeros(3)
    np.testing.assert_allclose(units.centre, centre)
    np.testing.assert_allclose(units.spread**2, ((x - centre) ** 2).mean(axis=0) + 4.0)
    exact = Units.of(sites(intercept, (0.0, 0.0)))
    assert exact.spread[2] == (1.0 if intercept else 3.0) and exact.spread[1] < 2.0


@INTERCEPTS
@pytest.mark.parametrize("scale", [1.0, 1e-170, 1e170])
def test_one_size_for_all_features_is_that_of_all_entries(intercept: bool, scale: float) -> None:
    """In any unit, also where squares are no numbers."""
    x = np.vstack([site.features for site in sites(intercept)])
    size = np.sqrt(np.mean((x - (x.mean(axis=0) if intercept else 0.0)) ** 2))
    np.testing.assert_allclose(Units.of_one_size(sites(intercept, scale=scale)).spread / scale, np.full(3, size))
    still = SiteProblem(np.full((4, 2), 3.0), np.ones(4), RobustSpec(0.1, 1.0, "l2", fit_intercept=intercept))
    assert Units.of_one_size([still]).spread.tolist() == [1.0 if intercept else 3.0] * 2
