"""The client step on features of unlike units, such as areas beside roundnesses: as exact, as quick after a guess."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.geometry.norms import dual_norm
from models.problem import RobustSpec, SiteProblem
from models.prox.hinge import robust_prox
from models.prox.hinge.active_set import settle
from models.prox.hinge.breakpoints import best_multiplier
from models.prox.hinge.certify import certified
from models.prox.hinge.equations import System, solve_equations
from models.prox.hinge.pattern import pattern_at
from models.solvers import factored
from tests.models.prox.hinge.statements import stated

NORMS = ("l1", "l2", "linf")
UNITS = np.array([2e4, 300.0, 50.0, 0.1, 1.0])


def _system(seed: int, *, bent: bool, cost: bool) -> System:
    """Five ties of seven unknowns, whose product has a condition of about 1e15."""
    random = np.random.default_rng(seed)
    rows = random.uniform(0.5, 1.0, size=(5, 7)) * np.append(UNITS, [1.0, 1.0])
    inverse, direction, bend = np.full(7, 0.5), None, 0.0
    if bent:
        direction = np.append(random.normal(size=6), 0.0)
        direction /= np.linalg.norm(direction)
        inverse[:6] = 0.1
        bend = 0.4
    costs = random.uniform(0.5, 1.0, size=5) if cost else np.zeros(5)
    return System(rows, costs, random.normal(size=5), random.normal(size=7), inverse, direction, bend)


@pytest.mark.parametrize("bent", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_root_twice_is_the_matrix(bent, seed):
    system = _system(seed, bent=bent, cost=False)
    vectors = np.random.default_rng(seed).normal(size=(7, 3))
    for column, twice in zip(vectors.T, system.root(system.root(vectors)).T, strict=True):
        np.testing.assert_allclose(twice, system.apply(column), rtol=1e-12)
        np.testing.assert_allclose(system.root(system.root(column)), system.apply(column), rtol=1e-12)


@pytest.mark.parametrize("bent", [False, True])
@pytest.mark.parametrize("loose", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_equations_hold_to_rounding(bent, loose, seed):
    system, price = _system(seed, bent=bent, cost=loose), 0.7
    found = solve_equations(system, price, loose, 0.0)
    assert found is not None
    multiplier = found.multiplier if loose else 0.0
    missing = system.constant + system.rows @ found.point - system.cost * multiplier
    sizes = np.abs(system.constant) + np.abs(system.rows) @ np.abs(found.point) + np.abs(system.cost * multiplier)
    assert np.abs(missing / sizes).max() <= 1e-14
    force = np.abs(found.shares) @ np.abs(system.rows)
    np.testing.assert_allclose(
        found.point, system.apply(system.target - found.shares @ system.rows), rtol=0, atol=1e-14 * force.max()
    )
    assert float(system.cost @ found.shares) == pytest.approx(price, rel=1e-9) or not loose
    assert math.isnan(found.multiplier) is not loose


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("penalty", [1e-3, 1e-1])
def test_a_guess_is_worth_as_much_in_unlike_units(make_site, norm, penalty):
    site = make_site(120, norm=norm, radius=1e-3, intercept=False)
    site = SiteProblem(site.features * UNITS, site.labels, site.spec)
    centre, start, solvers = np.ones(5) / UNITS, None, []
    for number in range(40):  # a centre that comes to rest, as in the rounds of ADMM
        answer = robust_prox(site, centre * (1.0 + 0.5**number), penalty, warm_start=start)
        start = answer.point
        assert answer.gap <= 1e-10 * max(answer.value, 1e-3)
        solvers.append((answer.solver, answer.iterations))
    settled = [count for solver, count in solvers[10:] if solver == "active set"]
    assert len(settled) >= 28
    assert max(settled) <= 4


@pytest.mark.parametrize("norm", NORMS)
def test_what_contradicts_a_pattern_and_changes_nothing_is_rounding(make_site, norm, monkeypatch):
    site, centre = make_site(80, norm=norm), np.linspace(-1.0, 2.0, 6)
    answer, problem = robust_prox(site, centre, 0.1), stated(site, centre, 0.1)
    floor = best_multiplier(problem.rows @ answer.point, problem.price, problem.flip, dual_norm(answer.point[:5], norm))
    monkeypatch.setattr("models.prox.hinge.pattern._EXCESS", -1e-6)  # as if every piece were rounded up by that
    trial, solved = settle(problem, pattern_at(problem, answer.point, floor, 1e-7), 8)
    assert trial is not None
    assert solved <= 4
    assert certified(problem, trial).gap <= 1e-11 * answer.value * site.labels.size


@pytest.mark.parametrize("scipy", [True, False])
@pytest.mark.parametrize(("seed", "norm", "flip"), [(30, "l2", 1.0), (49, "l1", math.inf)])
def test_the_gap_closes_where_pivots_are_a_hundred_thousandth_apart(monkeypatch, scipy, seed, norm, flip):
    if not scipy:
        monkeypatch.setattr(factored, "lapack", lambda: None)
    random = np.random.default_rng(seed)
    features = random.uniform(size=(int(random.integers(20, 600)), 5))
    labels = np.where(features @ random.normal(size=5) + 0.3 * random.normal(size=len(features)) > 0, 1.0, -1.0)
    spec = RobustSpec(float(random.choice([1e-3, 0.02, 0.1])), flip, transport_norm=norm)
    centre = random.normal(size=6) / np.append(UNITS, 1.0)
    found = robust_prox(SiteProblem(features * UNITS, labels, spec), centre, float(10 ** random.uniform(-3, 1)))
    assert found.gap <= 1e-10 * found.value


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("flip_cost", [5e6, math.inf])
def test_weights_of_features_of_ten_millions_are_small_and_not_0(norm, flip_cost):
    """Copies of rows tie, so that the interior point has the last word: it puts weights to 0 where that is better."""
    random = np.random.default_rng(9)
    features = 1e7 * np.repeat(random.normal(size=(15, 3)), 4, axis=0)
    labels = np.sign(features[:, 0] + 3e6 * np.repeat(random.normal(size=15), 4))
    site = SiteProblem(features, labels, RobustSpec(5e5, flip_cost, norm))
    found = robust_prox(site, np.zeros(4), 1e10)
    assert found.solver == "interior point" and 0.0 < np.abs(found.point[:3]).max() < 1e-6
    assert found.value < 0.6 and found.gap <= 1e-9, "all at 0 it is 1"
