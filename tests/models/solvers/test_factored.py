"""Factored systems: with SciPy and without, to the same digits; what has no solution is told by both."""

from __future__ import annotations

import numpy as np
import pytest

from models.solvers import factored
from models.solvers.factored import solve_by_cholesky, solve_by_lu, solve_lower, solve_upper


@pytest.fixture(params=["lapack", "numpy"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    assert factored.lapack() is not None, "these tests run with SciPy"
    if request.param == "numpy":
        monkeypatch.setattr(factored, "lapack", lambda: None)
    return str(request.param)


def definite(n: int, seed: int, units: float = 1.0) -> np.ndarray:
    """Symmetric positive definite, its unknowns in units from 1 to ``units``."""
    random = np.random.default_rng(seed)
    root = random.normal(size=(n, 2 * n)) * np.geomspace(1.0, units, n)[:, None]
    return root @ root.T


@pytest.mark.parametrize("n", [1, 2, 9, 60])
@pytest.mark.parametrize("units", [1.0, 1e8])
def test_cholesky_solves_by_the_lower_triangle_in_any_units(library: str, n: int, units: float) -> None:
    matrix, wanted = definite(n, 1, units), np.random.default_rng(2).normal(size=n) / np.geomspace(1.0, units, n)
    solve = solve_by_cholesky(np.tril(matrix) + np.triu(np.full((n, n), 1e300), 1))
    assert solve is not None
    np.testing.assert_allclose(solve(matrix @ wanted), wanted, rtol=1e-8)
    np.testing.assert_allclose(solve(2.0 * matrix @ wanted), 2.0 * wanted, rtol=1e-8)


def test_what_is_not_positive_definite_has_no_cholesky_factor(library: str) -> None:
    matrix = definite(5, 3)
    matrix[4, 4] = -1.0
    assert solve_by_cholesky(matrix) is None


@pytest.mark.parametrize("loose", [False, True])
def test_lu_solves_a_system_with_a_border_and_tells_its_pivots(library: str, loose: bool) -> None:
    n = 12
    matrix = np.zeros((n + loose, n + loose))
    matrix[:n, :n] = definite(n, 4)
    if loose:
        matrix[n, :n] = matrix[:n, n] = np.linspace(1.0, 2.0, n)
    wanted = np.random.default_rng(5).normal(size=n + loose)
    solve, pivots = solve_by_lu(matrix, n)
    np.testing.assert_allclose(solve(matrix @ wanted), wanted, rtol=1e-9)
    assert pivots.shape == (n,) and pivots.min() > 1e-3 * pivots.max()


def test_rows_that_repeat_show_in_the_pivots(library: str) -> None:
    rows = np.random.default_rng(6).normal(size=(4, 9))
    rows[3] = rows[0] + rows[1]
    _, pivots = solve_by_lu(rows @ rows.T, 4)
    assert pivots.min() <= 1e-12 * pivots.max()


def test_a_singular_system_has_no_finite_solution(library: str) -> None:
    solve, pivots = solve_by_lu(np.zeros((3, 3)), 3)
    assert not np.isfinite(solve(np.ones(3))).all() and pivots.tolist() == [0.0, 0.0, 0.0]


def test_triangles_are_solved_by_substitution() -> None:
    triangle, right = np.linalg.qr(np.random.default_rng(7).normal(size=(8, 8)))[1], np.arange(1.0, 9.0)
    triangle[0, 0] *= 1e-12
    upper, lower = solve_upper(triangle, right), solve_lower(triangle.T, right)
    assert np.abs((triangle @ upper - right) / (np.abs(triangle) @ np.abs(upper))).max() < 1e-15
    assert np.abs((triangle.T @ lower - right) / (np.abs(triangle.T) @ np.abs(lower))).max() < 1e-15
