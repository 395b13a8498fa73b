"""Smoothed steps from a start near by: to a pattern that settles, or where rows crowd a kink to the optimum itself."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import FloatArray, TransportNorm
from models.geometry.norms import dual_norm
from models.problem import RobustSpec, SiteProblem
from models.prox.hinge import robust_prox
from models.prox.hinge.active_set import settle
from models.prox.hinge.breakpoints import best_multiplier
from models.prox.hinge.certify import certified
from models.prox.hinge.smoothing import Approach, approach
from models.prox.hinge.statement import Statement
from tests.models.prox.hinge.statements import stated

NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")
SEEDS = range(4)


def drawn(norm: TransportNorm, seed: int, faulty: float | None = None) -> SiteProblem:
    """300 rows in the unit box; ``faulty``: share of the rows of one class, else both are alike."""
    random = np.random.default_rng(seed)
    x = random.uniform(size=(300, 5))
    scores = (x - 0.5) @ random.normal(size=5) + 0.3 * random.normal(size=300)
    limit = 0.0 if faulty is None else float(np.quantile(scores, 1.0 - faulty))
    return SiteProblem(x, np.where(scores > limit, 1.0, -1.0), RobustSpec(0.02, 0.8, norm))


def approached(site: SiteProblem, centre: FloatArray, penalty: float) -> tuple[Statement, Approach]:
    """From the answer at a centre to that at one beside it."""
    before = robust_prox(site, centre, penalty).point
    problem = stated(site, 0.95 * centre + 0.01, penalty)
    size = dual_norm(before[: problem.n_features], problem.norm)
    floor = best_multiplier(problem.rows @ before, problem.price, problem.flip, size)
    return problem, approach(problem, before, floor, 1e-10)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_where_few_rows_tie_it_ends_soon_in_a_pattern_that_settles(norm: TransportNorm, seed: int) -> None:
    """Two steps of shrinking widths and at most three of a fixed one."""
    problem, near = approached(drawn(norm, seed), np.linspace(-1.0, 2.0, 6), 0.1)
    assert near.pattern is not None and near.found is None and near.iterations <= 5
    trial, solved = settle(problem, near.pattern, 10)
    assert trial is not None and solved <= 6
    proof = certified(problem, trial)
    assert proof.gap <= 1e-9 * proof.objective


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_where_more_rows_tie_than_there_are_weights_it_ends_at_the_optimum(norm: TransportNorm, seed: int) -> None:
    """Nearly all rows of one class: weights of 0, at which every row is on its kink. What it returns is proven."""
    problem, near = approached(drawn(norm, seed, 0.05), np.zeros(6), 1e-3)
    assert near.found is not None and near.pattern is None and near.iterations <= 10
    proof = certified(problem, near.found)
    assert proof.gap <= problem.allowed_gap(proof.objective, 1e-10)
    assert near.found.gap == pytest.approx(proof.gap, abs=1e-12 * proof.objective)
