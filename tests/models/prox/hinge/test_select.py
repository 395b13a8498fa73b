"""How a client step is stated: what is refused, and a radius that the solver meets as a smaller one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import ProblemError
from models.prox.hinge import robust_prox


def test_rows_that_have_weights_are_refused(make_site):
    site = replace(make_site(10), row_weights=np.full(10, 1.0))
    with pytest.raises(ProblemError, match="counts every row once; rows that have weights go to models.prox.bundle"):
        robust_prox(site, np.zeros(6), 1.0)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(("size", "radius"), [(1e6, 2e3), (1.0, 1e5)])
def test_a_large_radius_is_met_as_one_that_still_holds_the_weights_at_zero(make_site, objective, norm, size, radius):
    """Rows far larger than the radius pull harder than it holds."""
    site = make_site(30, norm=norm, flip_cost=np.inf)
    centre = np.linspace(-1.0, 2.0, 6) / size
    site = replace(site, features=size * site.features, spec=replace(site.spec, radius=radius))
    found = robust_prox(site, centre, 0.1)
    assert found.value == pytest.approx(objective(found.point, site, centre, 0.1, 0.0), rel=1e-9)
    assert bool(np.abs(found.point[:5]).max() * radius > 1e-6) == (size > 1.0)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_rows_far_below_zero_pull_as_hard_as_rows_far_above(make_site, objective, norm):
    """Readings such as temperatures under frost, in a unit of their own: the largest of them is near 0."""
    site, centre = make_site(30, norm=norm, flip_cost=np.inf), np.zeros(6)
    features = -1e3 * np.abs(site.features)
    features[0] = 0.0
    site = replace(site, features=features, spec=replace(site.spec, radius=1.5e3))
    found = robust_prox(site, centre, 0.1)
    assert found.value == pytest.approx(objective(found.point, site, centre, 0.1, 0.0), rel=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(("far", "flip_cost"), [(1e5, np.inf), (1.0, 1e5)], ids=["a far centre", "dear flips"])
def test_a_large_radius_is_not_cut_below_what_centre_or_flips_take(make_site, objective, norm, far, flip_cost):
    """The centre is far enough to move the weights all the same; a label that flips takes some of the radius."""
    site, centre = make_site(60, norm=norm, flip_cost=flip_cost, positive=0.9), far * np.linspace(-1.0, 2.0, 6)
    site = replace(site, spec=replace(site.spec, radius=4e3))
    found = robust_prox(site, centre, 0.1)
    assert found.value == pytest.approx(objective(found.point, site, centre, 0.1, 0.0), rel=1e-9)
    assert bool(np.abs(found.point[:5]).max() > 1.0) == (far > 1.0)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("n", [60, 2_000])
def test_the_coefficients_of_the_rows_are_those_of_the_slope(make_site, norm, n):
    """What the slope is beside them is the part of the norm."""
    site = make_site(n, norm=norm, radius=0.05)
    found = robust_prox(site, np.linspace(-1.0, 2.0, 6), 0.1)
    whole = np.append(found.rows @ site.features, found.rows.sum())
    np.testing.assert_allclose(found.slope - found.norm_slope, whole, atol=1e-9)


def test_labels_of_another_shape_are_refused(make_site):
    """A column of labels would be spread over all rows."""
    site = make_site(10)
    for labels in (site.labels[:, None], site.labels[:9], site.labels[:1]):
        with pytest.raises(ProblemError, match=r"labels must have shape \(10,\) like the rows"):
            robust_prox(replace(site, labels=labels), np.zeros(6), 1.0)
