"""The small interior point method against CVXPY, degenerate programs among them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.solvers.cone_program import ConeProgram
from models.solvers.conic_interior_point import solve_cone_program
from models.solvers.solution import SolverStatus

cp = pytest.importorskip("cvxpy", reason="the oracle of these tests needs the extra 'reference'")


@settings(max_examples=120, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    cones=st.lists(st.integers(2, 6), max_size=3),
    quadratic=st.booleans(),
)
def test_agrees_with_cvxpy(seed: int, n: int, cones: list[int], quadratic: bool) -> None:
    """Programs that are feasible and bounded by construction, with no cone, one or several."""
    random = np.random.default_rng(seed)
    m, total = 3 * n, 3 * n + sum(cones)
    heads = m + np.cumsum([0, *cones])[:-1]
    rows = random.normal(size=(total, n))
    inside, duals = random.uniform(0, 1, total), random.uniform(0, 1, total)
    for head, size in zip(heads, cones, strict=True):
        for part in (inside, duals):
            part[head] = 1.5 * np.linalg.norm(part[head + 1 : head + size]) + 0.1
    inside[random.integers(m)] = 0.0
    limits = rows @ random.normal(size=n) + inside
    curvature = random.uniform(0, 2, n) if quadratic else np.zeros(n)
    linear = -rows.T @ duals
    solved = solve_cone_program(ConeProgram(curvature, linear, rows, limits, tuple(cones)))
    point, found = solved.point, solved.multipliers

    x = cp.Variable(n)
    slack = limits - rows @ x
    constraints = [slack[:m] >= 0]
    constraints += [
        cp.norm(slack[head + 1 : head + size]) <= slack[head] for head, size in zip(heads, cones, strict=True)
    ]
    reference = cp.Problem(cp.Minimize(0.5 * cp.sum(cp.multiply(curvature, x**2)) + linear @ x), constraints)
    reference.solve(solver=cp.CLARABEL)
    value = 0.5 * curvature @ point**2 + linear @ point
    assert value == pytest.approx(reference.value, rel=1e-6, abs=1e-6)
    assert found[:m].min() >= 0
    stationarity = curvature * point + linear + rows.T @ found
    np.testing.assert_allclose(stationarity, 0, atol=1e-7)
    assert solved.dual_residual == pytest.approx(np.abs(stationarity).max(), abs=1e-12)
    assert np.abs(np.minimum(limits - rows @ point, 0.0)[:m]).max() <= solved.primal_residual + 1e-12
    assert solved.status in (SolverStatus.SOLVED, SolverStatus.ROUNDING) and 0 < solved.iterations < 60


def test_is_deterministic() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(20, 4))
    program = ConeProgram(np.ones(4), random.normal(size=4), rows, random.uniform(0, 1, 20))
    first, second = solve_cone_program(program), solve_cone_program(program)
    assert (first.point == second.point).all() and (first.multipliers == second.multipliers).all()
