r"""Rows of a cone program most of which hold up one of G heights each, and the Newton matrix that they make.

Columns are f = (wide columns (k), extra columns (E)) and heights h (G), in the order wide, heights, extra. The first m
rows are ``x_j' f - h_site(j)``; of the others few touch a height. A Newton step of the interior point method solves
with ``diag(curvature) + rows' W^-2 rows``. The m rows, with weights s_j, give a block arrow, and

    sum_j s_j (x_j' f - h_g)^2 = sum_j s_j ((x_j - mean_g)' f)^2 + sum_g total_g (h_g - mean_g' f)^2,

``total_g`` the sum of the s_j of height g and ``mean_g`` the mean of its x_j by them, so with ``eta = h - means f`` in
place of h the heights are eliminated without a difference of large numbers: m k^2 operations and a factor of size k + E
in place of m (k + G)^2 and one of size k + E + G. One more row ``u' f + a' h`` with weight s, the level, keeps that: it
is ``p' f + a' eta``, p = u + means' a, and adds ``sigma p p'``, ``sigma = 1 / (1/s + sum_g a_g^2 / total_g)``. Where
more rows, or a cone, touch the heights, as those of a ball of mixtures do, the whole matrix is factored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.blas import dsyr

from models.basics import FloatArray
from models.solvers.height_blocks import HeightBlocks
from models.solvers.newton_factor import ArrowFactor, Factor, cholesky
from models.solvers.second_order_cone import Scaling

_DENSE = 30_000
"""Entries of the other rows up to which they are held with their zeros."""
_WIDE = 256
"""Columns from which a product in single precision is worth its rest."""


@dataclass(frozen=True)
class ArrowRows:
    """``wide`` (m, k) and ``height`` (m,), which is sorted and has every height; ``others`` (r, k + G + E).

    The last of the others are in second-order cones of the sizes ``cones``. Heights have no curvature in the
    program, and some row holds each of them up where its solution is: with none, little is left to divide by.
    """

    wide: FloatArray
    height: NDArray[np.intp]
    others: FloatArray
    cones: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.wide.shape[0] + self.others.shape[0], self.others.shape[1]

    @property
    def wide_enough(self) -> bool:
        """Whether it is worth it to factor them roughly."""
        return int(self.wide.shape[1]) >= _WIDE

    def dense(self) -> FloatArray:
        """The rows as a matrix."""
        m, k = self.wide.shape
        matrix = np.zeros(self.shape)
        matrix[:m, :k], matrix[m:] = self.wide, self.others
        matrix[np.arange(m), k + self.height] = -1.0
        return matrix

    def times(self, point: FloatArray) -> FloatArray:
        """``rows point``."""
        k = self.wide.shape[1]
        held = self.wide @ point[:k]
        held -= point[k + self.height]
        return np.concatenate([held, self._others @ point])

    def adjoint(self, duals: FloatArray) -> FloatArray:
        """``rows' duals``."""
        (m, k), count = self.wide.shape, self._firsts.shape[0]
        found: FloatArray = self._across @ duals[m:]
        found[:k] += duals[:m] @ self.wide
        found[k : k + count] -= np.add.reduceat(duals[:m], self._firsts)
        return found

    def factor(self, scaling: Scaling, curvature: FloatArray, roughly: bool = False) -> Factor | None:
        """Factor of ``diag(curvature) + rows' W^-2 rows``, ``roughly`` to 7 digits; None where rounding leaves none.

        With the heights eliminated, or of the whole where more than the level touches them.
        """
        (m, k), count = self.wide.shape, self._firsts.shape[0]
        weights = scaling.squared  # of the linear rows, these and others
        total, means, product = self._blocks.product(weights[:m], roughly)
        matrix = self._of_others(scaling, weights[m:])
        matrix[:k, :k] += product
        if self._level is None:
            between = means * total[:, None]
            matrix[:k, :k] += means.T @ between
            matrix[k : k + count, :k] -= between
            matrix[k + np.arange(count), k + np.arange(count)] += total
            return cholesky(matrix, curvature)
        weight = float(weights[m + self._level]) if self._level >= 0 else 0.0
        row = self.others[self._level] if weight > 0 else np.zeros(self.shape[1])
        heights, through = row[k : k + count], row[self._free].copy()
        through[:k] += heights @ means
        share = 1.0 / (1.0 / weight + float(heights @ (heights / total))) if weight > 0 else 0.0
        matrix = dsyr(share, through, lower=True, a=matrix, overwrite_a=True)
        whole = cholesky(matrix, curvature[self._free])
        return None if whole is None else ArrowFactor(whole, self._free, means, total, heights, through, share)

    @cached_property
    def _blocks(self) -> HeightBlocks:
        return HeightBlocks(self.wide, self._firsts)

    @cached_property
    def _others(self) -> Any:
        return self.others if self.others.size <= _DENSE else sparse.csr_array(self.others)

    @cached_property
    def _across(self) -> Any:
        """The others' transpose, by rows."""
        return self._others.T if self.others.size <= _DENSE else sparse.csr_array(self._others.T)

    @cached_property
    def _firsts(self) -> NDArray[np.intp]:
        """First row of each height."""
        return np.flatnonzero(np.diff(self.height, prepend=-1))

    @cached_property
    def _free(self) -> NDArray[np.intp]:
        """Columns that are no heights."""
        k, count = self.wide.shape[1], self._firsts.shape[0]
        free: NDArray[np.intp] = np.r_[0:k, k + count : self.others.shape[1]]
        return free

    @cached_property
    def _level(self) -> int | None:
        """The only other row that touches a height; -1: none does; None: more do."""
        k, count = self.wide.shape[1], self._firsts.shape[0]
        touching = np.flatnonzero(self.others[:, k : k + count].any(axis=1))
        if touching.size > 1 or touching.size and touching[0] >= self._linear:
            return None
        return int(touching[0]) if touching.size else -1

    @property
    def _linear(self) -> int:
        """Number of the others that are in no cone."""
        return int(self.others.shape[0]) - sum(self.cones)

    @cached_property
    def _columns(self) -> NDArray[np.intp]:
        """Columns of the matrix that is factored."""
        return np.arange(self.others.shape[1]) if self._level is None else self._free

    @cached_property
    def _kept(self) -> tuple[NDArray[np.intp], Any]:
        """Linear ones of the others but the level: which, and those rows."""
        kept = np.array([j for j in range(self._linear) if j != self._level], dtype=np.intp)
        rows = self._others[kept][:, self._columns]
        if sparse.issparse(rows) and rows.shape[0] * rows.shape[1] <= _DENSE:
            return kept, rows.toarray()
        return kept, rows

    @cached_property
    def _tails(self) -> list[tuple[Any, NDArray[np.intp], NDArray[np.intp], FloatArray]]:
        """Columns of each cone, and the entries of ``-rows' J rows``, which stay as they are: of a norm a diagonal."""
        found, ends = [], self._linear + np.cumsum(self.cones, dtype=np.intp)
        for size, end in zip(self.cones, ends, strict=True):
            if size * self._columns.size <= _DENSE:
                rows = self.others[end - size : end, self._columns]
                square = rows.T @ rows - 2.0 * np.outer(rows[0], rows[0])
                down, across = square.nonzero()
                found.append((rows.T, down, across, square[down, across]))
                continue
            held = self._others[end - size : end][:, self._columns]
            entries = (held.T @ held - 2.0 * (held[[0]].T @ held[[0]])).tocoo()
            found.append((sparse.csr_array(held.T), entries.row, entries.col, entries.data))
        return found

    def _of_others(self, scaling: Scaling, weights: FloatArray) -> FloatArray:
        """``rows' W^-2 rows`` of the others but the level, over the columns of the matrix: a lower triangle."""
        kept, rows = self._kept
        if sparse.issparse(rows):
            total = np.asarray((rows.T @ sparse.diags_array(weights[kept]) @ rows).toarray())
        else:
            total = rows.T @ (rows * weights[kept, None])
        total = total.T  # the same, in the order of the products
        for (_, cone), (tail, down, across, same) in zip(scaling.cones, self._tails, strict=True):
            total[down, across] += same * (1.0 / cone.size**2)
            total = dsyr(2.0 / cone.size**2, tail @ cone.axis, lower=True, a=total, overwrite_a=True)
        return np.asarray(total)
