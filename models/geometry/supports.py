"""Supports: where features (and targets) can lie at all, whatever an adversary would like."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.polytopes import check_bounded, inner_point


@dataclass(frozen=True)
class BoxSupport:
    """Box support ``low <= x <= high`` of the features, each of shape (P,).

    For a regression loss the target may have a range of its own; classification has no use for it.
    """

    low: FloatArray
    high: FloatArray
    target_low: float = -math.inf
    target_high: float = math.inf

    def __post_init__(self) -> None:
        """Refuse bounds that are not finite or that are crossed."""
        if self.low.shape != self.high.shape or self.low.ndim != 1:
            raise ProblemError(
                f"support bounds must be two vectors of one length, got {self.low.shape} and {self.high.shape}"
            )
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            raise ProblemError("support bounds must be finite; use no support for an unbounded one")
        if (self.low > self.high).any():
            raise ProblemError("support bounds are crossed: every low must be at or below its high")
        if not self.target_low < self.target_high:
            raise ProblemError(
                f"the support of the target needs low < high, got {self.target_low:g} and {self.target_high:g}"
            )


@dataclass(frozen=True)
class PolytopeSupport:
    """Polytope support ``matrix x <= limits`` (DRFL eq. 15), or ``matrix x + target_column y <= limits`` (eq. 14).

    ``matrix`` (r, P), ``limits`` (r,), ``target_column`` (r,) for a regression loss and None for classification. It
    must be bounded and have a point that is strictly inside (DRFL's Slater point); ``inner`` is one, the target last
    where there is one, and ``depth`` its distance to the nearest wall.
    """

    matrix: FloatArray
    limits: FloatArray
    target_column: FloatArray | None = None
    inner: FloatArray = field(init=False, repr=False, compare=False)
    depth: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what is not a system of inequalities, and a polytope that is empty, flat or unbounded."""
        if self.matrix.ndim != 2 or self.limits.shape != self.matrix.shape[:1]:
            raise ProblemError(
                "a polytope support needs a matrix (r, P) and limits (r,), "
                f"got {self.matrix.shape} and {self.limits.shape}"
            )
        if self.target_column is not None and self.target_column.shape != self.limits.shape:
            raise ProblemError(
                f"the target column of a polytope support must have the shape {self.limits.shape}, "
                f"got {self.target_column.shape}"
            )
        whole = self.matrix if self.target_column is None else np.column_stack([self.matrix, self.target_column])
        if not (np.isfinite(whole).all() and np.isfinite(self.limits).all()):
            raise ProblemError("the matrix, limits and target column of a polytope support must be finite")
        inner, depth = inner_point(whole, self.limits)
        check_bounded(whole)
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "depth", depth)


Support = BoxSupport | PolytopeSupport
