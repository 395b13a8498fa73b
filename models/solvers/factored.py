r"""Square systems of a client step that are solved for more than one right side.

LAPACK's factors by SciPy where it is installed. A plant need not have it: NumPy keeps no factor, so there each right
side is solved from the matrix anew, to the same digits and in some microseconds more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from models.basics import FloatArray

Solver = Callable[[FloatArray], FloatArray]
"""Solution (n,) for a right side (n,); not finite where rounding leaves none."""


@cache
def lapack() -> Any:
    """SciPy's LAPACK, which is loaded with the first system: who only looks at a method waits for none. Or None."""
    try:
        from scipy.linalg import lapack as found
    except ModuleNotFoundError:
        return None
    return found


def solve_by_lu(matrix: FloatArray, definite: int) -> tuple[Solver, FloatArray]:
    """Solver of a square matrix (n, n) without a structure, and the sizes of the pivots of its first ``definite`` rows.

    These rows and columns by themselves are positive definite but for rounding; pivots are 0 where they are not.
    """
    return (_lu_by_numpy if lapack() is None else _lu_by_lapack)(matrix, definite)


def solve_by_cholesky(matrix: FloatArray) -> Solver | None:
    """Solver of a symmetric positive definite matrix (n, n), of which the lower triangle counts; None where it is not.

    What stands above the diagonal may be anything.
    """
    return (_cholesky_by_numpy if lapack() is None else _cholesky_by_lapack)(matrix)


def solve_upper(triangle: FloatArray, right: FloatArray) -> FloatArray:
    """Solution (n,) of an upper triangular system with no 0 on its diagonal: elimination finds nothing to eliminate."""
    return np.asarray(np.linalg.solve(triangle, right))


def solve_lower(triangle: FloatArray, right: FloatArray) -> FloatArray:
    """The same of a lower triangular one, which is upper triangular from its end."""
    return np.asarray(np.linalg.solve(triangle[::-1, ::-1], right[::-1])[::-1])


def _lu_by_lapack(matrix: FloatArray, definite: int) -> tuple[Solver, FloatArray]:
    factor, exchanges, _ = lapack().dgetrf(matrix)

    def solve(right: FloatArray) -> FloatArray:
        return np.asarray(lapack().dgetrs(factor, exchanges, right)[0])

    return solve, np.abs(factor.diagonal()[:definite])


def _lu_by_numpy(matrix: FloatArray, definite: int) -> tuple[Solver, FloatArray]:
    try:
        pivots = np.square(np.linalg.cholesky(matrix[:definite, :definite]).diagonal())
    except np.linalg.LinAlgError:
        pivots = np.zeros(definite)
    return _solver(matrix), pivots


def _cholesky_by_lapack(matrix: FloatArray) -> Solver | None:
    factor, failed = lapack().dpotrf(matrix.T, lower=0, clean=0)

    def solve(right: FloatArray) -> FloatArray:
        return np.asarray(lapack().dpotrs(factor, right, lower=0)[0])

    return None if failed else solve


def _cholesky_by_numpy(matrix: FloatArray) -> Solver | None:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    return _solver(np.tril(matrix) + np.tril(matrix, -1).T)


def _solver(matrix: FloatArray) -> Solver:
    def solve(right: FloatArray) -> FloatArray:
        try:
            return np.asarray(np.linalg.solve(matrix, right))
        except np.linalg.LinAlgError:
            return np.full_like(right, np.nan)

    return solve
