"""AD-LPMM's site half: the rows that a round draws, and the cut of all rows that its answer is."""

from __future__ import annotations

import numpy as np

from models.methods.catalogue import get_method
from models.methods.splitting.ad_lpmm_site import LEAST_ROWS, DrflSite, sampled_rows
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
