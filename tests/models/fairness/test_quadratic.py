"""Relative fairness over quadratics against CVXPY where it is convex, and against its own proof."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.fairness.ambiguity_set import RelativeSet, check_convexity
from models.fairness.indices import relative_unfairness
from models.fairness.quadratic import QuadraticLosses, solve_relative


def squares(seed, n, p, rows=15):
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(rows, p)) for _ in range(n)]
    return QuadraticLosses.of_squares(features, [x @ rng.normal(size=p) + rng.normal(size=rows) for x in features])


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4), st.sampled_from([0.0, 0.05, 0.3]))
@settings(max_examples=20, derandomize=True)
def test_solutions_prove_themselves_where_the_condition_holds(seed, n, p, phi):
    losses = squares(seed, n, p)
    sizes = np.linalg.eigvalsh(losses.hessians)
    limit = 0.95 * sizes.min() / (sizes.min() + sizes.max())
    ambiguity = RelativeSet.of_shares(n, min(phi, limit), 0.3, 0.4)
    # one solution is proven up to Proposition 10's limit, which is wider than that of a proven rate
    assert ambiguity.sum_norm() < check_convexity(ambiguity, sizes.min(), sizes.max()).stated
    found = solve_relative(losses, ambiguity)
    assert -1e-9 * found.upper <= found.gap <= 1e-9 * found.upper
    assert found.upper == pytest.approx(ambiguity.largest(found.losses), rel=1e-12)
    nudge = np.random.default_rng(seed).normal(size=(50, p))
    assert all(ambiguity.largest(losses.values(found.point + d)) >= found.upper * (1 - 1e-9) for d in nudge)


@pytest.mark.parametrize("boxed", [False, True])
def test_agrees_with_cvxpy_without_negative_weights(boxed):
    losses = squares(4, 4, 3)
    ambiguity = RelativeSet.of_shares(4, 0.0, 0.25, 0.25)
    box = (np.full(3, -0.1), np.full(3, 0.1)) if boxed else None
    found = solve_relative(losses, ambiguity, box=box)
    point = cp.Variable(3)
    each = [
        0.5 * cp.quad_form(point, cp.psd_wrap(h)) + s @ point + c
        for h, s, c in zip(losses.hessians, losses.slopes, losses.constants, strict=True)
    ]
    limits = [] if box is None else [point >= box[0], point <= box[1]]
    program = cp.Problem(cp.Minimize(cp.maximum(*each)), limits)
    program.solve(solver="CLARABEL")
    assert found.upper == pytest.approx(program.value, rel=1e-7)
    assert found.gap <= 1e-8 * found.upper
    assert found.point == pytest.approx(point.value, abs=1e-4)


def test_unfairness_never_rises_with_phi():
    losses = squares(8, 5, 3)
    ratios = []
    for phi in np.linspace(0.0, 0.2, 6):
        found = solve_relative(losses, RelativeSet.of_shares(5, float(phi), 0.4, 0.4))
        assert found.gap <= 1e-9 * found.upper
        ratios.append(relative_unfairness(found.losses, 0.4, 0.4))
    assert (np.diff(ratios) <= 1e-7).all() and ratios[-1] < ratios[0] - 0.01


def test_what_is_not_proven_says_so_and_what_is_flat_is_refused():
    steep = QuadraticLosses(np.array([[[1.0]], [[100.0]]]), np.array([[-1.0], [0.0]]), np.array([2.0, 0.5]))
    found = solve_relative(steep, RelativeSet.of_shares(2, 0.9, 0.5, 0.5), box=(np.array([-9.0]), np.array([9.0])))
    grid = np.linspace(-9, 9, 200001)
    least = min(RelativeSet.of_shares(2, 0.9, 0.5, 0.5).largest(steep.values(np.array([x]))) for x in grid[::50])
    assert found.lower <= least + 1e-6
    with pytest.raises(ProblemError, match="flat in some direction"):
        solve_relative(
            QuadraticLosses(np.zeros((1, 1, 1)), np.ones((1, 1)), np.ones(1)), RelativeSet.of_shares(1, 0, 1, 1)
        )
    with pytest.raises(ProblemError, match="losses of 2 sites and sets over 3"):
        solve_relative(steep, RelativeSet.of_shares(3, 0.1, 0.5, 0.5))


def test_a_feature_that_is_made_of_others_is_refused_whatever_rounding_leaves_of_the_curvature():
    """The least curvature is then some digits' noise, above 0 as often as below."""
    above = 0
    for seed in (*range(10), 883, 1016, 1271):
        random = np.random.default_rng(seed)
        rows = [random.normal(size=(30, 1 + seed % 7)) for _ in range(3)]
        made = [np.column_stack([each, each @ np.linspace(1.0, 2.0, each.shape[1])]) for each in rows]
        losses = QuadraticLosses.of_squares(made, [random.normal(size=30) for _ in rows], mean=True)
        above += np.linalg.eigvalsh(losses.hessians.mean(axis=0))[0] > 0
        with pytest.raises(ProblemError, match="flat in some direction"):
            solve_relative(losses, RelativeSet.of_shares(3, 0.1, 0.5, 0.5))
    assert above > 3
