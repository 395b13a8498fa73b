"""Cholesky factors of Newton matrices: of whole ones, of those that rounding has left singular, and of none else."""

from __future__ import annotations

import numpy as np
import pytest

from models.solvers.newton_factor import cholesky, ridge_of, triangle


@pytest.mark.parametrize("size", [3, 40, 300])
def test_a_factor_solves_by_the_lower_triangle_whatever_the_size(size: int) -> None:
    random = np.random.default_rng(size)
    rows, curvature = random.normal(size=(size + 5, size)), random.uniform(0.1, 1.0, size)
    matrix, right = rows.T @ rows, random.normal(size=size)
    lower = np.tril(matrix) + np.triu(np.full((size, size), 7.0), 1)
    factor = cholesky(lower, curvature)
    assert factor is not None
    np.testing.assert_allclose(factor.solve(right), np.linalg.solve(matrix + np.diag(curvature), right), rtol=1e-8)


def test_a_matrix_that_rounding_has_made_singular_has_a_factor_all_the_same() -> None:
    """Late in a program its rows are nearly dependent: without a factor it would end before its tolerance."""
    for missing in (1e-16, 1e-15, 1e-12):
        matrix = np.array([[1.0, 1.0], [1.0, 1.0 - missing]])
        found = triangle(matrix.copy())
        assert found is not None
        np.testing.assert_allclose(np.tril(found) @ np.tril(found).T, matrix, atol=1e-10)
    assert triangle(np.array([[1.0, 1.0], [1.0, 1.0 - 1e-9]])) is None
    assert triangle(np.array([[1.0, 2.0], [2.0, 1.0]])) is None


def test_curvature_is_left_as_it_is_and_never_nothing() -> None:
    assert ridge_of(np.array([0.0, 1e-12, 0.5])).tolist() == [1e-10, 1e-10, 0.5]
