r"""What lifts of a kernel have in common: K features in [0, 1], behind the P features themselves where they are kept.

    z(x) = (x, c_1(x) .. c_K(x))    or    z(x) = (c_1(x) .. c_K(x)),        0 <= c_k(x) <= 1

The K features are bounded, so that the box [0, 1] holds all that comes out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.features.bent_move import bent_move
from models.features.lift import check_features, check_slopes, lead_over_steepness
from models.geometry.supports import BoxSupport

WIDEST: Final = 1e100
"""Largest bandwidth, and one over the least: beyond, its square and that of a frequency are no numbers."""


def check_bandwidth(bandwidth: float) -> float:
    """A kernel's bandwidth; :class:`ProblemError` for one that is not above 0, or too far from 1."""
    if not 1.0 / WIDEST <= float(bandwidth) <= WIDEST:
        raise ProblemError(f"bandwidth must lie between {1.0 / WIDEST:g} and {WIDEST:g}, got {bandwidth}")
    return bandwidth


@dataclass(frozen=True)
class KernelLift(ABC):
    """The part of ``models.features.lift.Lift`` that depends on the shapes alone; a lift says the rest."""

    keep_linear: bool = field(default=True, kw_only=True)

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Number of features that go in, P."""

    @property
    @abstractmethod
    def n_components(self) -> int:
        """Number of features of the kernel, K."""

    @abstractmethod
    def components(self, features: FloatArray) -> FloatArray:
        """Features of the kernel (n, K) in [0, 1] of features (n, P)."""

    @abstractmethod
    def gradient(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        r"""Gradient in the features, (n, P), of ``<slopes_i, z(x)>`` at each row x_i: ``J(x_i)^T slopes_i``."""

    @abstractmethod
    def steepness(self, slopes: FloatArray, transport_norm: TransportNorm) -> FloatArray:
        r"""Bound on ``||J(x)^T s||_*`` over all x, for each s along the last axis: how steep ``<s, z(x)>`` is."""

    @abstractmethod
    def gradients(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        r"""Gradient in the features, (n, R, P), of each ``<s_r, z(x)>`` at each row."""

    @abstractmethod
    def bends(self, slopes: FloatArray) -> FloatArray:
        r"""Bends A (R, P, P): a move d adds at most ``d^T A d`` to, or takes it from, what the gradient says of it."""

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return self.n_components + (self.n_inputs if self.keep_linear else 0)

    @property
    def support(self) -> BoxSupport:
        """The box [0, 1] of the lifted features."""
        return BoxSupport(np.zeros(self.n_outputs), np.ones(self.n_outputs))

    def apply(self, features: FloatArray) -> FloatArray:
        """Lifted features (n, ``n_outputs``) in [0, 1] of features (n, P) in [0, 1]."""
        check_features(features, self.n_inputs)
        found = self.components(features)
        return np.hstack([features, found]) if self.keep_linear else found

    def shares(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """Gradient at the row times the way from the middle, (n, P): by the slope at the sample."""
        return self.gradient(features, slopes) * (features - 0.5)

    def least_move(
        self, slopes: FloatArray, features: FloatArray, lead: FloatArray, transport_norm: TransportNorm
    ) -> FloatArray:
        """The larger of ``lead / steepness`` and the bound of ``models.features.bent_move``, (n, R)."""
        check_features(features, self.n_inputs)
        whole = lead_over_steepness(lead, self.steepness(slopes, transport_norm)[None])
        near = bent_move(np.abs(self.gradients(features, slopes)), self.bends(slopes), lead, transport_norm)
        return np.maximum(whole, near)

    def parts(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes of the features themselves, (..., P), 0 where they are not kept, and of the kernel's, (..., K)."""
        check_slopes(slopes, self.n_outputs)
        if not self.keep_linear:
            return np.zeros((*slopes.shape[:-1], self.n_inputs)), slopes
        return slopes[..., : self.n_inputs], slopes[..., self.n_inputs :]
