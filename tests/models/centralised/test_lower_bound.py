"""The pooled lower bound is one from any duals whatever, and the value itself from those of the solution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import TransportNorm
from models.centralised.hinge import _balanced, _lower_bound, _stretched
from models.centralised.hinge_solver import PooledPoint, solve_pooled
from tests.models.centralised.test_hinge_solver import NORMS, Drawn

CASES = [
    ((0.1, 0.02, 0.3), (0.5, 2.0, 1.0)), ((0.1, 0.0, 0.0), (0.5, 1.0, np.inf)), ((0.2, 0.2, 0.2), (0.05, 0.05, 0.05)),
    ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), ((0.02, 0.3, 0.1), (np.inf, np.inf, np.inf)),
]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("radii", "costs"), CASES)
def test_no_duals_prove_more_than_the_optimum(
    norm: TransportNorm, radii: tuple[float, ...], costs: tuple[float, ...]
) -> None:
    """Drawn ones, those of the solution with errors, ones far outside; the exact ones prove all but digits."""
    drawn, random = Drawn(norm, radii, costs), np.random.default_rng(1)
    problem, end = drawn.problem, solve_pooled(drawn.problem)
    best, count = drawn.value(end), drawn.problem.share.size
    assert best * (1.0 - 1e-6) <= _lower_bound(problem, end) <= best * (1.0 + 1e-12)
    for error in (1e-6, 1e-2, 0.3, 3.0):
        for _ in range(6):
            noise, dual = error * random.normal(size=(2, count)), end.norm_dual + error * random.normal(size=4)
            weights = end.weights + error * random.normal(size=5)
            for keep, flip in ((end.keep, end.flip), (np.full(count, 0.5), 0.0), (np.ones(count), 0.0)):
                found = PooledPoint(weights, keep + noise[0], flip + noise[1], dual, 0, 0.0)
                assert _lower_bound(problem, found) <= best * (1.0 + 1e-9)


@pytest.mark.parametrize(("radii", "costs"), CASES)
def test_duals_that_miss_by_digits_are_corrected(radii: tuple[float, ...], costs: tuple[float, ...]) -> None:
    """Where nothing pays for a slope that is left, it would be all that they prove."""
    drawn, random = Drawn("l2", radii, costs), np.random.default_rng(1)
    end = solve_pooled(drawn.problem)
    keep, flip = np.array([end.keep, end.flip]) + 1e-4 * random.normal(size=(2, end.keep.size))
    found = _lower_bound(drawn.problem, replace(end, keep=keep, flip=flip))
    assert found >= drawn.value(end) * (1.0 - 5e-4)


def test_row_weights_are_balanced_by_taking_off_the_heavier_side() -> None:
    problem, random = Drawn("l2", (0.1, 0.02, 0.3), (0.5, 2.0, 1.0)).problem, np.random.default_rng(2)
    for lean in (0.2, 5.0):
        keep, flip = random.uniform(0.0, 0.5, (2, problem.share.size))
        keep[problem.signed[:, -1] > 0] *= min(lean, 1.0)
        keep[problem.signed[:, -1] < 0] *= min(1.0 / lean, 1.0)
        kept, flipped = _balanced(problem, keep, flip)
        assert (kept <= keep).all() and (flipped <= flip).all()
        assert (problem.share * (flipped - kept)) @ problem.signed[:, -1] == pytest.approx(0.0, abs=1e-14)
        assert float(problem.share @ (kept + flipped)) > 0.5 * float(problem.share @ (keep + flip))


def test_flips_alone_prove_what_the_radii_pay_for() -> None:
    """Every row half kept and half flipped has no slope: twice the radius over the cost of each site, at most 1."""
    problem = Drawn("l2", (0.1, 0.02, 0.0), (0.1, 0.4, 1.0)).problem
    count = problem.share.size
    nothing = PooledPoint(np.zeros(5), np.zeros(count), np.zeros(count), np.zeros(4), 0, 0.0)
    assert _lower_bound(problem, nothing) == pytest.approx(0.5 * 1.0 + 0.3 * 0.1 + 0.2 * 0.0)


@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", np.inf)])
def test_a_slope_beyond_what_the_radii_carry_is_paid_for_in_its_norm(norm: TransportNorm, order: float) -> None:
    """Every row kept in full leaves no room for a correction: Z / ||q|| of the height is proven, by hand."""
    problem = Drawn(norm, (0.1, 0.02, 0.3), (np.inf, np.inf, np.inf)).problem
    problem = replace(problem, signed=problem.signed[:, :4])
    found = PooledPoint(np.zeros(4), np.ones(77), np.zeros(77), np.zeros(4), 0, 0.0)
    slope, carried = problem.share @ problem.signed, float(problem.price.sum())
    assert np.linalg.norm(slope, order) > 1.5 * carried
    assert _lower_bound(problem, found) == pytest.approx(carried / np.linalg.norm(slope, order), rel=1e-12)


def test_weights_are_stretched_where_that_costs_nothing() -> None:
    """Separated rows without any price: the least margin becomes 1. Else, or where one is on the wrong side, never."""
    drawn = Drawn("l2", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)).problem
    signed = np.abs(drawn.signed) + 0.1
    separated, weights = replace(drawn, signed=signed), np.full(5, 1e-3)
    assert (signed @ _stretched(separated, weights)).min() == pytest.approx(1.0)
    assert (_stretched(separated, 1e3 * weights) == 1e3 * weights).all()
    for other in (replace(separated, radius=np.array([0.0, 0.1, 0.0])), drawn):
        assert (_stretched(other, weights) == weights).all()
