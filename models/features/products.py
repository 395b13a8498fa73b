r"""Pairwise products of chosen features, beside all features: effects of two sensors together.

    z(x) = (s(x), 1/2 + 2 (x_i - 1/2)(x_j - 1/2) for the chosen pairs i < j, and i = j where squares are wanted)

``s(x)`` are the features themselves, or with ``segments`` above 1 their ramps (``models.features.spline``): a broken
line for each sensor, and what two do together.

On [0, 1] a product's partial derivatives are ``2 (x_j - 1/2)`` and ``2 (x_i - 1/2)``, at most 1 (a square's: 2). With M
the matrix of these bounds, a pair a row, ``|z_p(x) - z_p(x')| <= sum_j M_pj |x_j - x'_j|``, and s stretches nothing,
whence the Lipschitz constant: ``1 + max_j sum_p M_pj`` in l1, ``sqrt(1 + ||M||_2^2)`` in l2,
``max(1, max_p sum_j M_pj)`` in linf. Factors are clipped to [0, 1], so it holds everywhere.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.features.bent_move import bent_move
from models.features.lift import check_features, check_size, check_slopes, lead_over_steepness, lesser_steepness
from models.features.spline import SplineLift, spline_lift
from models.geometry.supports import BoxSupport


@dataclass(frozen=True)
class ProductLift:
    """All ``n_inputs`` features, each as ``segments`` ramps, then the products of ``pairs`` of their numbers from 0."""

    n_inputs: int
    pairs: tuple[tuple[int, int], ...]
    segments: int = 1

    @property
    def n_alone(self) -> int:
        """Number of those that come out of single features; the products are behind them."""
        return self.n_inputs * self.segments

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return self.n_alone + len(self.pairs)

    @cached_property
    def spline(self) -> SplineLift | None:
        """The ramps of single features; None where these stay as they are."""
        return None if self.segments == 1 else spline_lift(self.n_inputs, self.segments)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the number of features, of the pairs, and of the ramps where there are any."""
        digest = hashlib.sha256(f"product-lift/1 {self.n_inputs} {self.pairs}".encode())
        digest.update(b"" if self.spline is None else self.spline.fingerprint.encode())
        return digest.hexdigest()

    @property
    def support(self) -> BoxSupport:
        """The box [0, 1]; of a ramp from 0 to the width of its segment."""
        high = np.ones(self.n_outputs)
        if self.spline is not None:
            high[: self.n_alone] = self.spline.support.high
        return BoxSupport(np.zeros(self.n_outputs), high)

    def apply(self, features: FloatArray) -> FloatArray:
        """Features or ramps, and products (n, K), of features (n, P)."""
        check_features(features, self.n_inputs)
        first, second = self._factors(features)
        alone = features if self.spline is None else self.spline.apply(features)
        return np.hstack([alone, 0.5 + 2.0 * first * second])

    def gradient(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """Gradient (n, P) of ``<slopes_i, z(x)>`` at each row x_i in [0, 1]."""
        check_slopes(slopes, self.n_outputs)
        alone = slopes[:, : self.n_alone]
        lines = alone if self.spline is None else self.spline.gradient(features, alone)
        return np.asarray(lines + self._of_products(features, slopes))

    def shares(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """What each line rises from the middle, and of the products the gradient times the way from there, (n, P)."""
        away = features - 0.5
        if self.spline is None:
            return self.gradient(features, slopes) * away
        check_slopes(slopes, self.n_outputs)
        lines = self.spline.shares(features, slopes[:, : self.n_alone])
        return np.asarray(lines + self._of_products(features, slopes) * away)

    def steepness(self, slopes: FloatArray, transport_norm: TransportNorm) -> FloatArray:
        """Bound on the dual norm of the gradient, from those of the partial derivatives."""
        by_feature = self.partial_bounds(slopes)
        return lesser_steepness(by_feature, slopes, self.lipschitz(transport_norm), transport_norm)

    def partial_bounds(self, slopes: FloatArray) -> FloatArray:
        """Bound (..., P) on the size of each partial derivative of ``<s, z(x)>`` over all x, s along the last axis."""
        check_slopes(slopes, self.n_outputs)
        return np.asarray(self._steepest(slopes) + np.abs(slopes[..., self.n_alone :]) @ self._bounds)

    def lipschitz(self, transport_norm: TransportNorm) -> float:
        """The constant of the formula above."""
        if transport_norm == "l1":
            return 1.0 + float(self._bounds.sum(axis=0).max())
        if transport_norm == "linf":
            return max(1.0, float(self._bounds.sum(axis=1).max()))
        return math.sqrt(1.0 + float(np.linalg.norm(self._bounds, 2)) ** 2)

    def least_move(
        self, slopes: FloatArray, features: FloatArray, lead: FloatArray, transport_norm: TransportNorm
    ) -> FloatArray:
        """The larger of ``lead / steepness`` and the bound of ``models.features.bent_move``, (n, R)."""
        whole = lead_over_steepness(lead, self.steepness(slopes, transport_norm)[None])
        near = bent_move(self.slopes_at(features, slopes), self.bends(slopes), lead, transport_norm)
        return np.maximum(whole, near)

    def slopes_at(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """Slopes B (n, R, P) of ``<s_r, z(x)>`` at rows (n, P): what a move of one feature changes it by, but for A.

        A row's products change by ``G_j`` times the part of a move that stays in [0, 1], a feature itself by all of it,
        so that the steepest of the ways between is counted; of ramps the steepest segment, and ``|G_j|``.
        """
        check_slopes(slopes, self.n_outputs)
        first, second = self._factors(features)
        alone, along = slopes[:, : self.n_alone], 2.0 * slopes[:, self.n_alone :]
        products = np.einsum("np,rp,pj->nrj", second, along, self._places(0))
        products += np.einsum("np,rp,pj->nrj", first, along, self._places(1))
        if self.spline is None:
            return np.asarray(np.maximum(np.abs(alone), np.abs(alone + products)))
        return np.asarray(self._steepest(slopes) + np.abs(products))

    def bends(self, slopes: FloatArray) -> FloatArray:
        """Bends A (R, P, P) of ``<s_r, z(x)>``, symmetric: the products of a move d add ``d^T A d``."""
        halves = np.einsum("rp,pi,pj->rij", slopes[:, self.n_alone :], self._places(0), self._places(1))
        return np.asarray(halves + halves.transpose(0, 2, 1))

    def _of_products(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """Gradient (n, P) of what the products add at each row; outside [0, 1] none."""
        first, second = self._factors(features)
        along = 2.0 * slopes[:, self.n_alone :]
        inside = (features >= 0.0) & (features <= 1.0)
        return np.where(inside, (along * second) @ self._places(0) + (along * first) @ self._places(1), 0.0)

    def _steepest(self, slopes: FloatArray) -> FloatArray:
        """Size (..., P) of the steepest segment of each feature's line."""
        alone = np.abs(slopes[..., : self.n_alone])
        return np.asarray(alone.reshape(*slopes.shape[:-1], self.n_inputs, self.segments).max(axis=-1))

    @cached_property
    def _bounds(self) -> FloatArray:
        """M (pairs, P): 1 for each factor of a pair, 2 for a square."""
        return self._places(0) + self._places(1)

    def _places(self, side: int) -> FloatArray:
        """One row a pair, (pairs, P), with a 1 at its first or second factor."""
        return np.eye(self.n_inputs)[[pair[side] for pair in self.pairs]]

    def _factors(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        centred = np.clip(features, 0.0, 1.0) - 0.5
        return centred[:, [i for i, _ in self.pairs]], centred[:, [j for _, j in self.pairs]]


def product_lift(
    n_features: int, chosen: Sequence[int], *, squares: bool = False, segments: int = 1
) -> ProductLift:
    """All pairs of the chosen features, by number from 0; with ``squares`` each with itself too.

    ``ProblemError`` for a number that no feature has, one that is chosen twice, where no pair is left, or for
    ``segments`` below 1.
    """
    if segments < 1:
        raise ProblemError(f"each feature has one segment at least, got {segments}")
    for number in chosen:
        if not 0 <= number < n_features:
            raise ProblemError(f"products are of features 0 to {n_features - 1}, there is none with number {number}")
    if len(set(chosen)) != len(chosen):
        raise ProblemError("products are of different features: one of them is chosen twice")
    if len(chosen) + squares < 2:
        raise ProblemError("products need two chosen features at least, or squares")
    # Whole numbers of Python: numpy's are written otherwise, and the fingerprint is of what is written.
    order = sorted(operator.index(number) for number in chosen)
    pairs = tuple((i, j) for a, i in enumerate(order) for j in order[a if squares else a + 1 :])
    check_size(n_features * segments + len(pairs))
    return ProductLift(n_features, pairs, segments)
