r"""What a lift is: a map of scaled features to those that the linear method sees, with a proof of how far it stretches.

With ``||z(x) - z(x')|| <= L ||x - x'||`` in the transport norm, the ball of radius ``r`` around lifted rows holds the
image of the ball of radius ``r / L`` around the rows themselves: a worst-case risk over the first is never below that
over the second (a coupling of two distributions of features is one of their images, and costs at most L times as
much).

All lifts take features in [0, 1] and give features in [0, 1]. Kinds: ``fourier``, ``spline``, ``products``,
``nystrom``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.geometry.norms import DUAL_NORM, vector_norm
from models.geometry.supports import BoxSupport

LARGEST = 4096
"""Most features that a lift may give."""


class Lift(Protocol):
    """A lift of P features, ``n_inputs``, to K, ``n_outputs``."""

    @property
    def n_inputs(self) -> int:
        """Number of features that go in."""

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the numbers that make the lift: the same at two sites exactly when they lift alike."""

    @property
    def support(self) -> BoxSupport:
        """A box (K,) that holds the lifted features of all x in [0, 1]^P."""

    def apply(self, features: FloatArray) -> FloatArray:
        """Lifted features (n, K) of features (n, P); ``ProblemError`` for another shape."""

    def gradient(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        r"""Gradient in the features, (n, P), of ``<slopes_i, z(x)>`` at each row x_i: ``J(x_i)^T slopes_i``."""

    def shares(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """What each feature adds to ``<slopes_i, z(x_i)>``, (n, P), counted from the middle 0.5 of its range."""

    def steepness(self, slopes: FloatArray, transport_norm: TransportNorm) -> FloatArray:
        r"""Bound on ``||J(x)^T s||_*`` over all x, for each s along the last axis: how steep ``<s, z(x)>`` is."""

    def lipschitz(self, transport_norm: TransportNorm) -> float:
        r"""Constant L with ``||z(x) - z(x')|| <= L ||x - x'||`` for all x and x', in the transport norm."""

    def least_move(
        self, slopes: FloatArray, features: FloatArray, lead: FloatArray, transport_norm: TransportNorm
    ) -> FloatArray:
        r"""Lower bound (n, R) of the length of a move of features (n, P) that lowers ``<s_r, z(x)>`` by a lead.

        ``slopes`` (R, K), ``lead`` (n, R) at or above 0. Infinite where no move does it, 0 where the lead is 0.
        """


def check_features(features: FloatArray, n_inputs: int) -> None:
    """``ProblemError`` where features are not (n, P)."""
    if features.ndim != 2 or features.shape[1] != n_inputs:
        raise ProblemError(f"the lift takes features (n, {n_inputs}), got {features.shape}")


def check_slopes(slopes: FloatArray, n_outputs: int) -> None:
    """``ProblemError`` where slopes are not (..., K)."""
    if slopes.shape[-1] != n_outputs:
        raise ProblemError(f"slopes must have length {n_outputs}, got {slopes.shape[-1]}")


def check_size(n_outputs: int) -> None:
    """``ProblemError`` where a lift gives more than ``LARGEST`` features."""
    if n_outputs > LARGEST:
        raise ProblemError(f"the lift makes {n_outputs} features, {LARGEST} at most are allowed: take a smaller lift")


def lead_over_steepness(lead: FloatArray, steepness: FloatArray) -> FloatArray:
    """``lead / steepness``, broadcast; where nothing is steep infinite, and 0 where nothing leads."""
    lead, steepness = np.broadcast_arrays(lead, steepness)
    still = np.where(lead > 0, np.inf, 0.0)
    return np.divide(lead, steepness, out=still, where=steepness > 0)


def lesser_steepness(
    by_feature: FloatArray, slopes: FloatArray, lipschitz: float, transport_norm: TransportNorm
) -> FloatArray:
    """The lesser of two bounds: of the partial derivatives ``by_feature`` (..., P), and ``L ||s||_*``."""
    dual = DUAL_NORM[transport_norm]
    return np.minimum(vector_norm(by_feature, dual), lipschitz * vector_norm(slopes, dual))
