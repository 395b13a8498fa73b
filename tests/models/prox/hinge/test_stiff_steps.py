"""A stiff step moves hardly at all: the kinks at its start prove it, however much of its digits the stiffness takes."""

from __future__ import annotations

import numpy as np
import pytest

from models.prox.hinge import robust_prox
from models.prox.hinge.certify import subgradient_of_norm
from models.prox.hinge.statement import Point
from models.worst_case.risk import site_cut
from tests.models.prox.hinge.statements import stated

NORMS = ["l1", "l2", "linf"]
WEIGHTS = {
    "all differ": [4.1, -2.3, 0.7, 5.2, -1.9, 0.4],
    "some are 0": [4.1, 0.0, 0.0, 5.2, -1.9, 0.4],
    "all of one size": [3.0, -3.0, 3.0, 3.0, -3.0, 0.4],
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("penalty", [1e6, 1e9])
@pytest.mark.parametrize("flip_cost", [0.8, np.inf])
@pytest.mark.parametrize("weights", [*WEIGHTS])
def test_a_stiff_step_needs_no_interior_point(make_site, assert_minorant, norm, penalty, flip_cost, weights):
    for seed in range(5):
        site = make_site(120, norm=norm, radius=1e-3, flip_cost=flip_cost, seed=seed)
        start = np.array(WEIGHTS[weights])
        cut = site_cut(start, site)
        answer = robust_prox(site, start + cut.slope / penalty, penalty, warm_start=start)
        assert answer.solver == "active set"
        assert answer.gap <= 1e-10 * max(answer.value, 1e-3)
        random = np.random.default_rng(seed)
        assert_minorant(answer, site, [start, np.zeros(6), *random.normal(size=(20, 6)) * 5.0])
        height = answer.offset + float(answer.slope @ answer.point)
        assert height == pytest.approx(site_cut(answer.point, site).risk, rel=1e-9)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("weights", [*WEIGHTS])
def test_the_norms_subgradient_touches_the_norm_and_stays_below_it(make_site, norm, weights):
    order = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    problem = stated(make_site(40, norm=norm), np.zeros(6), 0.1)
    w, random = np.array(WEIGHTS[weights]), np.random.default_rng(3)
    flip = np.zeros(40)
    flip[:1] = 0.5 * problem.price / problem.flip
    room = problem.price - problem.flip * float(flip.sum())
    own = -room * np.sign(w[:5]) + random.normal(size=5) * 0.3 * room
    found = -subgradient_of_norm(problem, Point(w, np.linalg.norm(w[:5], order), np.zeros(40), flip, own))
    assert float(found @ w[:5]) == pytest.approx(room * float(np.linalg.norm(w[:5], order)), rel=1e-12)
    for u in random.normal(size=(200, 5)):
        assert float(found @ u) <= room * float(np.linalg.norm(u, order)) * (1.0 + 1e-12)
