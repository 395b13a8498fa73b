"""Active-set steps and smoothing: right where they end, and honest where they do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.geometry.norms import dual_norm
from models.prox.hinge import robust_prox
from models.prox.hinge.active_set import settle
from models.prox.hinge.breakpoints import best_multiplier
from models.prox.hinge.certify import certified
from models.prox.hinge.pattern import pattern_at
from models.prox.hinge.smoothing import approach
from models.worst_case.risk import site_risk
from tests.models.prox.hinge.statements import stated

NORMS = ("l1", "l2", "linf")


def _floor(problem, weights):
    size = dual_norm(weights[: problem.n_features], problem.norm)
    return best_multiplier(problem.rows @ weights, problem.price, problem.flip, size)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_kinks_of_the_answer_give_the_answer(make_site, norm, penalty, seed):
    site, centre = make_site(80, norm=norm, seed=seed), np.linspace(-1.0, 2.0, 6)
    answer = robust_prox(site, centre, penalty)
    problem = stated(site, centre, penalty)
    trial, solved = settle(problem, pattern_at(problem, answer.point, _floor(problem, answer.point), 1e-7), 8)
    assert trial is not None
    assert solved <= 4
    proof = certified(problem, trial)
    assert proof.gap <= 1e-11 * proof.objective
    np.testing.assert_allclose(trial.weights, answer.point, atol=1e-4)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("flip_cost", [0.8, np.inf])
def test_rows_that_stay_in_one_piece_may_be_stated_as_a_slope(make_site, norm, flip_cost):
    """Kept rows far from their kinks: what is left settles at the same answer, with the same objective proven."""
    site, centre = make_site(80, norm=norm, flip_cost=flip_cost), np.linspace(-1.0, 2.0, 6)
    answer = robust_prox(site, centre, 0.1)
    whole = stated(site, centre, 0.1)
    floor, margins = _floor(whole, answer.point), whole.rows @ answer.point
    steady = (margins < 0.7) & (1.0 - margins > 0.3 + np.maximum(1.0 + margins - (flip_cost * floor), 0.0))
    assert steady.sum() > 5
    part = replace(
        whole, rows=np.ascontiguousarray(whole.rows[~steady]), linear=-whole.rows[steady].sum(axis=0),
        constant=float(steady.sum()),
    )
    trial, _ = settle(part, pattern_at(part, answer.point, floor, 1e-7), 8)
    assert trial is not None
    np.testing.assert_allclose(trial.weights, answer.point, atol=1e-4)
    proof = certified(part, trial)
    assert proof.gap <= 1e-11 * proof.objective
    assert proof.objective == pytest.approx(80 * answer.value, rel=1e-9)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(5))
def test_smoothing_ends_in_a_pattern_that_settles_or_says_that_it_does_not(make_site, norm, seed):
    site, centre = make_site(300, norm=norm, seed=seed), np.linspace(-1.0, 2.0, 6)
    before = robust_prox(site, centre, 0.1).point
    problem = stated(site, 0.9 * centre, 0.1)
    near = approach(problem, before, _floor(problem, before), 1e-10)
    if near.found is not None:
        assert near.found.gap <= 1e-9 * near.found.objective
    if near.pattern is not None:
        trial, _ = settle(problem, near.pattern, 10)
        if trial is not None:
            assert certified(problem, trial).gap <= 1e-9 * certified(problem, trial).objective


@pytest.mark.parametrize("seed", range(20))
def test_best_multiplier_is_the_price_of_the_exact_worst_case(make_site, seed):
    random = np.random.default_rng(seed)
    site = make_site(40, radius=float(random.choice([0.001, 0.02, 0.3])), flip_cost=0.7, seed=seed)
    weights = random.normal(size=6) * random.choice([0.1, 1.0])
    margins = site.labels * (site.features @ weights[:5] + weights[5])
    lam = best_multiplier(margins, 40 * site.spec.radius, 0.7, float(np.linalg.norm(weights[:5])))
    losses = np.maximum(np.maximum(0.0, 1.0 - margins), 1.0 + margins - 0.7 * lam)
    assert site.spec.radius * lam + losses.mean() == pytest.approx(site_risk(weights, site).value, rel=1e-12)
