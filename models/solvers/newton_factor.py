"""Factored Newton matrices of an interior point method: a Cholesky factor, and one that eliminates the heights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsv
from scipy.linalg.lapack import dpotrf, dpotrs

from models.basics import FloatArray

_SHORT_STEPS = 1e-10
"""Curvature that is added where the program has none: it keeps steps short, the answer stays exact."""
_WIDE = 256
"""Unknowns from which two triangular solutions of one right side are quicker than LAPACK's of many."""


class Factor(Protocol):
    """A factored Newton matrix."""

    def solve(self, right: FloatArray) -> FloatArray:
        """Solution (n,) for a right side (n,)."""


@dataclass(frozen=True)
class ArrowFactor:
    """Factor of what is left on the other columns, and how the heights follow from them."""

    whole: Factor
    free: NDArray[np.intp]
    means: FloatArray
    total: FloatArray
    heights: FloatArray
    through: FloatArray
    share: float

    def solve(self, right: FloatArray) -> FloatArray:
        """Solution (n,) for a right side (n,)."""
        (count, k), found = self.means.shape, np.empty_like(right)
        held = right[k : k + count] / self.total
        at_level = float(self.heights @ held)
        left = right[self.free]
        left[:k] += right[k : k + count] @ self.means
        left -= (self.share * at_level) * self.through
        free = self.whole.solve(left)
        pull = self.share * (float(self.through @ free) + at_level)
        found[self.free] = free
        found[k : k + count] = self.means @ free[:k] + held - pull * (self.heights / self.total)
        return found


@dataclass(frozen=True)
class _Cholesky:
    factor: FloatArray

    def solve(self, right: FloatArray) -> FloatArray:
        """Solution (n,) for a right side (n,)."""
        if right.shape[0] < _WIDE:
            return np.asarray(dpotrs(self.factor, right, lower=True)[0])
        half = dtrsv(self.factor, right, lower=True)
        return np.asarray(dtrsv(self.factor, half, lower=True, trans=1, overwrite_x=True))


def cholesky(matrix: FloatArray, curvature: FloatArray) -> Factor | None:
    """Factor of ``matrix + diag(curvature)``, with a little more where there is next to none; None: there is none.

    Of the matrix the lower triangle is read.
    """
    diagonal = np.einsum("ii->i", matrix)  # a view
    diagonal += ridge_of(curvature)
    factor = triangle(matrix)
    return None if factor is None else _Cholesky(factor)


def ridge_of(curvature: FloatArray) -> FloatArray:
    """What is added to the diagonal (n,)."""
    return np.maximum(curvature, _SHORT_STEPS)


def triangle(matrix: FloatArray) -> FloatArray | None:
    """Lower triangular factor (n, n) of the matrix, with a little more where it has none; None: there is none."""
    for jitter in (0.0, 1e-14, 1e-11):
        shifted = matrix + np.diag(jitter * matrix.diagonal()) if jitter else matrix
        factor, failed = dpotrf(shifted, lower=True, clean=False)
        if not failed:
            return np.asarray(factor)
    return None
