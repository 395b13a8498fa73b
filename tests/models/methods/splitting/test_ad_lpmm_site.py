"""AD-LPMM's site half: the rows that a round draws, and the cut of all rows that its answer is."""

from __future__ import annotations

import numpy as np
import pytest

from models.methods.catalogue import get_method
from models.methods.splitting.ad_lpmm_site import LEAST_ROWS, DrflSite, sampled_rows
from models.problem import SiteProblem
from models.worst_case.risk import site_cut
from tests.models.methods.splitting.drawn import drawn_sites


def test_drawn_rows_are_the_same_for_the_same_round_and_never_few() -> None:
    site = drawn_sites(rows=200)["site-0"]
    first, again, other = sampled_rows(site, 0.3, 4), sampled_rows(site, 0.3, 4), sampled_rows(site, 0.3, 5)
    np.testing.assert_array_equal(first, again)
    assert first is not None and first.shape == (60,) and not np.array_equal(first, other)
    assert sampled_rows(site, 0.001, 1).shape == (LEAST_ROWS,)
    assert sampled_rows(site, 1.0, 1) is None
    assert sampled_rows(site, 0.001, 1, LEAST_ROWS + 7).shape == (LEAST_ROWS + 7,)


def test_a_drawn_answer_is_a_cut_of_all_rows() -> None:
    site = drawn_sites("hinge", rows=60)["site-1"]
    message = {
        "point": np.array([0.5, -0.2, 0.1]), "centre": np.array([1.0, 0.3, 0.0]), "target": np.array(0.1),
        "stiffness": np.array(100.0), "draw": np.array(3.0),
    }
    answer = DrflSite().answer(site, message, {**get_method("drfl-admm").parameters, "batch": 0.5})
    for u in np.random.default_rng(0).normal(size=(20, 3)):
        norm = float(np.sqrt(u[:2] @ u[:2]))
        height = answer["minorant_offset"] + answer["minorant_slope"] @ u + answer["minorant_norm_weight"] * norm
        assert height <= site_cut(u, site).risk + 1e-10


def test_below_the_target_no_step_is_taken_and_the_risk_told_is_the_target() -> None:
    """``c/2 (r - b)_+^2`` is 0 there, so the centre is the least, and ``pi = max(r, b)``."""
    site, centre = drawn_sites("hinge", rows=30)["site-0"], np.array([0.3, -0.1, 0.2])
    risk = site_cut(centre, site).risk
    message = {"point": centre, "centre": centre, "stiffness": np.array(50.0), "draw": np.array(0.0)}
    for target, told in ((risk + 0.5, risk + 0.5), (0.5 * risk, None)):
        answer = DrflSite().answer(site, {**message, "target": np.array(target)}, get_method("drfl-admm").parameters)
        moved = float(np.abs(answer["local_point"] - centre).max())
        if told is None:
            assert moved > 1e-3
            assert answer["local_risk"] == pytest.approx(site_cut(answer["local_point"], site).risk)
        else:
            assert moved <= 1e-12 and answer["local_risk"] == told


def test_a_step_on_drawn_rows_counts_them_as_often_as_they_do_among_themselves() -> None:
    site = drawn_sites("hinge", rows=60)["site-1"]
    weights = np.linspace(0.2, 1.8, site.labels.size)
    weighted = SiteProblem(site.features, site.labels, site.spec, weights / weights.mean())
    rows = sampled_rows(weighted, 0.5, 9)
    assert rows is not None and abs(weighted.counts[rows].mean() - 1.0) > 0.01
    message = {
        "point": np.zeros(3), "centre": np.array([1.0, 0.3, 0.0]), "target": np.array(0.1),
        "stiffness": np.array(10.0), "draw": np.array(9.0),
    }
    parameters = get_method("drfl-admm").parameters
    found = DrflSite().answer(weighted, message, {**parameters, "batch": 0.5})
    counts = weighted.counts[rows] / weighted.counts[rows].mean()
    alone = SiteProblem(site.features[rows], site.labels[rows], site.spec, counts)
    expected = DrflSite().answer(alone, message, {**parameters, "batch": 1.0})
    np.testing.assert_allclose(found["local_point"], expected["local_point"], atol=1e-9)
    assert found["local_risk"] == pytest.approx(float(expected["local_risk"]))


def test_without_a_step_it_ends_at_the_point_that_is_judged_and_not_at_the_centre() -> None:
    site, point = drawn_sites("hinge", rows=30)["site-0"], np.array([0.3, -0.1, 0.2])
    message = {
        "point": point, "centre": point + 1.0, "target": np.array(0.1), "stiffness": np.array(0.0),
        "draw": np.array(0.0),
    }
    answer = DrflSite().answer(site, message, get_method("drfl-admm").parameters)
    np.testing.assert_array_equal(answer["local_point"], point)
    assert answer["local_risk"] == answer["risk"] == pytest.approx(site_cut(point, site).risk)
