"""The interior point alone: from any start, for every norm, to a small gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.geometry.norms import dual_norm
from models.prox.hinge.certify import certified
from models.prox.hinge.interior_point import start_interior
from models.solvers.hinge_rows import add_weighted_gram
from tests.models.prox.hinge.statements import stated


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("flip_cost", [0.2, 2.0, np.inf])
@pytest.mark.parametrize("start", [0.0, 1.0, 1e3])
def test_gap_closes_from_any_start(make_site, norm, flip_cost, start):
    site = make_site(50, norm=norm, flip_cost=flip_cost, radius=0.05)
    problem = stated(site, np.linspace(-3.0, 3.0, 6), 0.1)
    weights = np.full(6, start)
    run = start_interior(problem, weights, dual_norm(weights[:5], norm))
    steps = 0
    while run.gap > 1e-10 * run.objective() and steps < 60:
        assert run.advance()
        steps += 1
    assert steps <= (20 if start < 10.0 else 25), "plain steps of the path, without a corrector, take twice as many"
    end = run.iterate()
    proof = certified(problem, end)
    assert proof.gap <= 1e-8 * proof.objective
    assert proof.objective == pytest.approx(end.objective, rel=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_objective_has_what_rows_that_are_not_here_contribute(make_site, norm):
    """Their constant and their slope: what the gap of a working set is measured by."""
    problem = replace(
        stated(make_site(50, norm=norm, radius=0.05), np.linspace(-3.0, 3.0, 6), 0.1),
        linear=np.linspace(2.0, -4.0, 6), constant=7.0,
    )
    run = start_interior(problem, np.zeros(6), 0.0)
    while run.gap > 1e-10 * run.objective() and run.advance():
        pass
    end = run.iterate()
    assert certified(problem, end).objective == pytest.approx(end.objective, rel=1e-9)


@pytest.mark.parametrize("n", [1, 70, 30_000])
def test_weighted_gram_of_blocks(n):
    random = np.random.default_rng(0)
    rows, weights = random.normal(size=(n, 7)), random.uniform(size=n)
    gram = np.zeros((7, 7))
    add_weighted_gram(rows, weights, gram)
    np.testing.assert_allclose(
        gram,
        rows.T @ np.diag(weights) @ rows if n < 100 else np.einsum("i,ij,ik->jk", weights, rows, rows),
        rtol=1e-10,
        atol=1e-10,
    )
