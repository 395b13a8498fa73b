r"""Random Fourier lift: a nonlinear classifier from a linear method, with nothing shared but a seed.

    z(x)_k = cos(<omega_k, x - middle> + phase_k),      omega_k ~ N(0, I) / bandwidth,  phase_k ~ U[0, 2 pi)

``<z(x), z(x')> * 2 / K`` approximates the Gaussian kernel ``exp(-||x - x'||^2 / (2 bandwidth^2))`` (Rahimi and Recht
2007). Lifted features lie in the box [-1, 1], or in [0, 1] as the methods and the sensor ranges want them; the ball of
a lifted problem is one of lifted features. Every site must draw the same lift: compare ``fingerprint``.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.features.lift import check_features, check_slopes, lead_over_steepness, lesser_steepness
from models.geometry.supports import BoxSupport


@dataclass(frozen=True)
class FourierLift:
    """A drawn lift: ``frequencies`` (K, P), ``phases`` (K,); ``keep_linear`` puts the P features in front."""

    frequencies: FloatArray
    phases: FloatArray
    seed: int
    bandwidth: float
    keep_linear: bool = True

    @property
    def n_inputs(self) -> int:
        """Number of features that go in."""
        return int(self.frequencies.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return int(self.frequencies.shape[0]) + (self.n_inputs if self.keep_linear else 0)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all numbers of the lift: the same at two sites exactly when they lift alike."""
        digest = hashlib.sha256(f"fourier-lift/1 {self.seed} {self.bandwidth!r} {self.keep_linear}".encode())
        for array in (self.frequencies, self.phases):
            digest.update(str(array.shape).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
        return digest.hexdigest()

    @property
    def support(self) -> BoxSupport:
        """The box [0, 1] of the lifted features."""
        return BoxSupport(np.zeros(self.n_outputs), np.ones(self.n_outputs))

    def apply(self, features: FloatArray) -> FloatArray:
        """Lifted features (n, ``n_outputs``) in [0, 1] of features (n, P) in [0, 1]."""
        check_features(features, self.n_inputs)
        waves = 0.5 + 0.5 * np.cos((features - 0.5) @ self.frequencies.T + self.phases)
        return np.hstack([features, waves]) if self.keep_linear else waves

    def gradient(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        r"""Gradient in the features, (n, P), of ``<slopes_i, z(x)>`` at each row x_i: ``J(x_i)^T slopes_i``."""
        linear, waves = self._parts(slopes)
        turned = -0.5 * np.sin((features - 0.5) @ self.frequencies.T + self.phases)
        return np.asarray(linear + (turned * waves) @ self.frequencies)

    def shares(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        """Gradient at the row times the way from the middle, (n, P): by the slope at the sample."""
        return self.gradient(features, slopes) * (features - 0.5)

    def steepness(self, slopes: FloatArray, transport_norm: TransportNorm) -> FloatArray:
        r"""Bound on ``||J(x)^T s||_*`` over all x, for each s along the last axis: the steepest that ``<s, z(x)>`` is.

        The lesser of two: feature by feature, ``|sin| <= 1``; and ``||s||_*`` times the lift's Lipschitz constant.
        """
        linear, waves = self._parts(slopes)
        by_feature = np.abs(linear) + 0.5 * np.abs(waves) @ np.abs(self.frequencies)
        return lesser_steepness(by_feature, slopes, self.lipschitz(transport_norm), transport_norm)

    def lipschitz(self, transport_norm: TransportNorm) -> float:
        r"""Constant L with ``||z(x) - z(x')|| <= L ||x - x'||`` for all x and x', from ``|sin| <= 1``."""
        kept = float(self.keep_linear)
        if transport_norm == "l1":
            return kept + 0.5 * float(np.abs(self.frequencies).sum(axis=0).max())
        if transport_norm == "linf":
            return max(kept, 0.5 * float(np.abs(self.frequencies).sum(axis=1).max()))
        return math.sqrt(kept + 0.25 * float(np.linalg.norm(self.frequencies, 2)) ** 2)

    def least_move(
        self, slopes: FloatArray, features: FloatArray, lead: FloatArray, transport_norm: TransportNorm
    ) -> FloatArray:
        """``lead / steepness``, (n, R)."""
        return lead_over_steepness(lead, self.steepness(slopes, transport_norm)[None])

    def _parts(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes of the features themselves, (..., P), and of the waves, (..., K)."""
        check_slopes(slopes, self.n_outputs)
        if not self.keep_linear:
            return np.zeros((*slopes.shape[:-1], self.n_inputs)), slopes
        return slopes[..., : self.n_inputs], slopes[..., self.n_inputs :]


def fourier_lift(
    n_features: int, n_components: int, *, bandwidth: float, seed: int, keep_linear: bool = True
) -> FourierLift:
    """Draw a lift; the same arguments give the same lift (numpy's PCG64), which ``fingerprint`` lets sites verify.

    ``ProblemError`` for a count below 1, a bandwidth that is not above 0, or a negative seed.
    """
    if n_features < 1 or n_components < 1:
        raise ProblemError(f"a lift needs at least one feature and one component, got {n_features} and {n_components}")
    if not (math.isfinite(bandwidth) and bandwidth > 0):
        raise ProblemError(f"bandwidth must be a finite number above 0, got {bandwidth}")
    if seed < 0:
        raise ProblemError(f"seed must be at or above 0, got {seed}")
    random = np.random.Generator(np.random.PCG64(seed))
    frequencies = random.standard_normal((n_components, n_features)) / bandwidth
    phases = random.uniform(0.0, 2.0 * math.pi, n_components)
    return FourierLift(frequencies, phases, seed, bandwidth, keep_linear)
