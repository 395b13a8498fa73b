r"""Products of features in units of their own: the lift of :mod:`models.features.products` behind their ranges.

    z(x) = p(x'),        x'_j = (x_j - low_j) / s_j,        s_j > 0

With b_j(s) the bound on ``|d<s, p> / dx'_j|`` that the products have, ``b_j / s_j`` is that of x, so the gradient's
dual norm is at most that of the vector ``(b_j / s_j)``, and ``L(p) / min_j s_j`` is a Lipschitz constant.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.features.bent_move import bent_move
from models.features.lift import check_features, lead_over_steepness, lesser_steepness
from models.features.products import ProductLift
from models.geometry.supports import BoxSupport


@dataclass(frozen=True, eq=False)
class ScaledProducts:
    """``products`` of features (P,) that are 0 at ``low`` and 1 at ``low + width``; ``width`` is above 0."""

    products: ProductLift
    low: FloatArray
    width: FloatArray

    @property
    def n_inputs(self) -> int:
        """Number of features that go in."""
        return self.products.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return self.products.n_outputs

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the products and of the ranges."""
        digest = hashlib.sha256(f"scaled-products/1 {self.products.fingerprint}".encode())
        digest.update(np.ascontiguousarray([self.low, self.width], dtype="<f8").tobytes())
        return digest.hexdigest()

    @property
    def support(self) -> BoxSupport:
        """That of the products, which holds what comes of features within their ranges."""
        return self.products.support

    def apply(self, features: FloatArray) -> FloatArray:
        """Scaled features, or ramps of them, and products (n, K) of features (n, P)."""
        return self.products.apply(self._scaled(features))

    def gradient(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """Gradient (n, P), in the features' own units, of ``<slopes_i, z(x)>`` at each row within the ranges."""
        return np.asarray(self.products.gradient(self._scaled(features), slopes) / self.width)

    def shares(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """Those of the products, (n, P): shares have no unit."""
        return self.products.shares(self._scaled(features), slopes)

    def steepness(self, slopes: FloatArray, transport_norm: TransportNorm) -> FloatArray:
        """Bound on the dual norm of the gradient, from those of the partial derivatives."""
        by_feature = self.products.partial_bounds(slopes) / self.width
        return lesser_steepness(by_feature, slopes, self.lipschitz(transport_norm), transport_norm)

    def lipschitz(self, transport_norm: TransportNorm) -> float:
        """That of the products by the narrowest range."""
        return self.products.lipschitz(transport_norm) / float(self.width.min())

    def least_move(
        self, slopes: FloatArray, features: FloatArray, lead: FloatArray, transport_norm: TransportNorm
    ) -> FloatArray:
        """As of the products, (n, R), in the features' own units: B by the widths, and A by the products of two."""
        whole = lead_over_steepness(lead, self.steepness(slopes, transport_norm)[None])
        near = self.products.slopes_at(self._scaled(features), slopes) / self.width
        bends = self.products.bends(slopes) / (self.width[:, None] * self.width)
        return np.maximum(whole, bent_move(near, bends, lead, transport_norm))

    def _scaled(self, features: FloatArray) -> FloatArray:
        check_features(features, self.n_inputs)
        return np.asarray((features - self.low) / self.width)
