r"""Nystrom features of a Gaussian kernel: coordinates of its feature map within the span of a few public points.

With ``k(x, y) = exp(-||x - y||^2 / (2 b^2)) = <f(x), f(y)>``, points ``p_1 .. p_K`` and ``G = (k(p_i, p_j))``,

    z(x) = 1/2 + 1/2 W k(x),        k(x) = (k(p_1, x) .. k(p_K, x)),        W = (G + ridge I)^(-1/2)

(Williams and Seeger 2001). ``W k(x) = W F^T f(x)`` with F the points' images as columns, and ``||W F^T||^2 =
||W G W|| <= 1``: so ``||z(x) - z(x')||_2 <= ||f(x) - f(x')|| / 2``, and ``||f(x) - f(x')||^2 = 2 - 2 k(x, x') <=
||x - x'||_2^2 / b^2``. The same gives ``|W k(x)| <= 1``. The points
are drawn from a seed inside the sensor ranges, or public; never rows.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.features.kernel_lift import KernelLift, check_bandwidth
from models.features.lift import check_size
from models.geometry.norms import DUAL_NORM, vector_norm

RIDGE = 1e-6
"""Added to the eigenvalues of G, so that points near one another do no harm."""
MOST_POINTS = 1024  # their matrix is factored, which takes the cube of as many
_STRETCH = 1.0 + 1e-5
"""Above ``||W G W||^(1/2)``, with the rounding of W."""


@dataclass(frozen=True)
class NystromLift(KernelLift):
    """``points`` (K, P) in [0, 1] and the kernel's ``bandwidth`` b; ``keep_linear`` puts the P features in front."""

    points: FloatArray
    bandwidth: float

    @property
    def n_inputs(self) -> int:
        """Number of features that go in."""
        return int(self.points.shape[1])

    @property
    def n_components(self) -> int:
        """Number of points, K."""
        return int(self.points.shape[0])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the points and the bandwidth; what follows from them differs by rounding at most."""
        digest = hashlib.sha256(f"nystrom-lift/1 {self.bandwidth!r} {self.keep_linear} {self.points.shape}".encode())
        digest.update(np.ascontiguousarray(self.points, dtype="<f8").tobytes())
        return digest.hexdigest()

    def components(self, features: FloatArray) -> FloatArray:
        """``1/2 + 1/2 W k(x)``, (n, K), of features (n, P)."""
        return np.clip(0.5 + 0.5 * self._kernel(features) @ self.whitening, 0.0, 1.0)

    def gradient(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        r"""Gradient (n, P) of ``<slopes_i, z(x)>`` at each row x_i."""
        linear, along = self.parts(slopes)
        return linear + self._towards(features, 0.5 * (along @ self.whitening) * self._kernel(features))

    def steepness(self, slopes: FloatArray, transport_norm: TransportNorm) -> FloatArray:
        r"""The lesser of three: ``L ||s||_*``; and of the kernel's part that by ``||s||_2``, or by its single bumps.

        ``a = W s / 2`` weighs the bumps, whose slope is at most ``exp(-1/2) / b``. A gradient's largest entry is at
        most its l2 norm, and its l1 norm at most sqrt(P) times that.
        """
        linear, along = self.parts(slopes)
        dual = DUAL_NORM[transport_norm]
        whole = 0.5 * _STRETCH * vector_norm(along, "l2")
        bumps = 0.5 * math.exp(-0.5) * vector_norm(along @ self.whitening, "l1")
        wide = math.sqrt(self.n_inputs) if transport_norm == "linf" else 1.0
        apart = vector_norm(linear, dual) + wide * np.minimum(whole, bumps) / self.bandwidth
        return np.minimum(apart, self.lipschitz(transport_norm) * vector_norm(slopes, dual))

    def gradients(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        r"""Gradient (n, R, P) of each ``<s_r, z(x)>`` at each row."""
        linear, along = self.parts(slopes)
        bumps, weights = self._kernel(features), 0.5 * (along @ self.whitening)
        return np.stack(
            [each + self._towards(features, of * bumps) for each, of in zip(linear, weights, strict=True)], axis=1
        )

    def bends(self, slopes: FloatArray) -> FloatArray:
        r"""``sqrt(3) / (4 b^2) ||s||_2`` in every direction, (R, P, P).

        The kernel's part is ``<h, f(x)>`` with ``||h|| <= ||s||_2 / 2``, and the second derivative of f along a unit
        vector has the squared length of the kernel's fourth derivative at 0, ``3 / b^4``.
        """
        sizes = 0.25 * math.sqrt(3.0) * _STRETCH * vector_norm(self.parts(slopes)[1], "l2") / self.bandwidth**2
        return np.asarray(sizes[:, None, None] * np.eye(self.n_inputs))

    def _towards(self, features: FloatArray, pull: FloatArray) -> FloatArray:
        """Gradient (n, P) of bumps that are so high (n, K) at the rows."""
        return np.asarray((pull @ self.points - pull.sum(axis=1, keepdims=True) * features) / self.bandwidth**2)

    def lipschitz(self, transport_norm: TransportNorm) -> float:
        """The constant from l2, and ``||z||_1 <= sqrt(K) ||z||_2``, ``||x||_2 <= sqrt(P) ||x||_inf``."""
        kept, bend = float(self.keep_linear), 0.5 * _STRETCH / self.bandwidth
        if transport_norm == "l1":
            return kept + bend * math.sqrt(len(self.points))
        if transport_norm == "linf":
            return max(kept, bend * math.sqrt(self.n_inputs))
        return math.sqrt(kept + bend**2)

    @cached_property
    def whitening(self) -> FloatArray:
        """W (K, K), symmetric."""
        values, vectors = np.linalg.eigh(self._kernel(self.points))
        return np.asarray((vectors / np.sqrt(np.maximum(values, 0.0) + RIDGE)) @ vectors.T)

    def _kernel(self, features: FloatArray) -> FloatArray:
        """``k(x_i, p_k)``, (n, K)."""
        squares = (features**2).sum(axis=1)[:, None] + (self.points**2).sum(axis=1) - 2.0 * features @ self.points.T
        return np.asarray(np.exp(-0.5 * np.maximum(squares, 0.0) / self.bandwidth**2))


def nystrom_lift(points: FloatArray, *, bandwidth: float, keep_linear: bool = True) -> NystromLift:
    """The lift of given points (K, P) in [0, 1]; ``ProblemError`` for others, or as :func:`check_bandwidth`."""
    if points.ndim != 2 or 0 in points.shape or not ((points >= 0.0) & (points <= 1.0)).all():
        raise ProblemError(f"points of a Nystrom lift are (K, P) between 0 and 1, got the shape {points.shape}")
    if len(points) > MOST_POINTS:
        raise ProblemError(f"a Nystrom lift has {MOST_POINTS} points at most, got {len(points)}")
    check_bandwidth(bandwidth)
    check_size(len(points) + (points.shape[1] if keep_linear else 0))
    return NystromLift(points, float(bandwidth), keep_linear=bool(keep_linear))


def drawn_points(n_features: int, n_points: int, seed: int) -> FloatArray:
    """Points (K, P) drawn evenly inside the sensor ranges; the same arguments give the same points (PCG64).

    :class:`ProblemError` without a feature or a point, or for a negative seed.
    """
    if n_features < 1 or n_points < 1 or seed < 0:
        raise ProblemError(
            f"points need a feature, a count above 0 and a seed at or above 0, got {n_features}, {n_points}, {seed}"
        )
    return np.random.Generator(np.random.PCG64(seed)).uniform(size=(n_points, n_features))
