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
from models.features.kernel_lift import KernelLift, check_bandwidth
from models.features.lift import lesser_steepness


@dataclass(frozen=True)
class FourierLift(KernelLift):
    """A drawn lift: ``frequencies`` (K, P), ``phases`` (K,); ``keep_linear`` puts the P features in front."""

    frequencies: FloatArray
    phases: FloatArray
    seed: int
    bandwidth: float

    @property
    def n_inputs(self) -> int:
        """Number of features that go in."""
        return int(self.frequencies.shape[1])

    @property
    def n_components(self) -> int:
        """Number of waves, K."""
        return int(self.frequencies.shape[0])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all numbers of the lift: the same at two sites exactly when they lift alike."""
        digest = hashlib.sha256(f"fourier-lift/1 {self.seed} {self.bandwidth!r} {self.keep_linear}".encode())
        for array in (self.frequencies, self.phases):
            digest.update(str(array.shape).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
        return digest.hexdigest()

    def components(self, features: FloatArray) -> FloatArray:
        """Waves (n, K) in [0, 1] of features (n, P)."""
        return np.asarray(0.5 + 0.5 * np.cos((features - 0.5) @ self.frequencies.T + self.phases))

    def gradient(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        r"""Gradient in the features, (n, P), of ``<slopes_i, z(x)>`` at each row x_i: ``J(x_i)^T slopes_i``."""
        linear, waves = self.parts(slopes)
        turned = self._turned(features)
        return np.asarray(linear + (turned * waves) @ self.frequencies)

    def steepness(self, slopes: FloatArray, transport_norm: TransportNorm) -> FloatArray:
        r"""Bound on ``||J(x)^T s||_*`` over all x, for each s along the last axis: the steepest that ``<s, z(x)>`` is.

        The lesser of two: feature by feature, ``|sin| <= 1``; and ``||s||_*`` times the lift's Lipschitz constant.
        """
        linear, waves = self.parts(slopes)
        by_feature = np.abs(linear) + 0.5 * np.abs(waves) @ np.abs(self.frequencies)
        return lesser_steepness(by_feature, slopes, self.lipschitz(transport_norm), transport_norm)

    def gradients(self, features: FloatArray, slopes: FloatArray) -> FloatArray:
        r"""Gradient (n, R, P) of each ``<s_r, z(x)>`` at each row."""
        linear, waves = self.parts(slopes)
        turned = self._turned(features)
        return np.stack([each + (turned * of) @ self.frequencies for each, of in zip(linear, waves, strict=True)], 1)

    def bends(self, slopes: FloatArray) -> FloatArray:
        r"""``1/4 sum_k |s_k| omega_k omega_k^T``, (R, P, P): a cosine bends by no more than 1."""
        sizes = np.abs(self.parts(slopes)[1])
        return np.asarray(0.25 * (sizes[:, None, :] * self.frequencies.T) @ self.frequencies)

    def _turned(self, features: FloatArray) -> FloatArray:
        """Derivative of each wave along its frequency, (n, K)."""
        return np.asarray(-0.5 * np.sin((features - 0.5) @ self.frequencies.T + self.phases))

    def lipschitz(self, transport_norm: TransportNorm) -> float:
        r"""Constant L with ``||z(x) - z(x')|| <= L ||x - x'||`` for all x and x', from ``|sin| <= 1``."""
        kept = float(self.keep_linear)
        if transport_norm == "l1":
            return kept + 0.5 * float(np.abs(self.frequencies).sum(axis=0).max())
        if transport_norm == "linf":
            return max(kept, 0.5 * float(np.abs(self.frequencies).sum(axis=1).max()))
        return math.sqrt(kept + 0.25 * float(np.linalg.norm(self.frequencies, 2)) ** 2)


def fourier_lift(
    n_features: int, n_components: int, *, bandwidth: float, seed: int, keep_linear: bool = True
) -> FourierLift:
    """Draw a lift; the same arguments give the same lift (numpy's PCG64), which ``fingerprint`` lets sites verify.

    Equal numbers are the same arguments, whether of Python or of numpy.

    ``ProblemError`` for a count below 1, a negative seed, or as :func:`check_bandwidth`.
    """
    if n_features < 1 or n_components < 1:
        raise ProblemError(f"a lift needs at least one feature and one component, got {n_features} and {n_components}")
    check_bandwidth(bandwidth)
    if seed < 0:
        raise ProblemError(f"seed must be at or above 0, got {seed}")
    random = np.random.Generator(np.random.PCG64(seed))
    frequencies = random.standard_normal((n_components, n_features)) / bandwidth
    phases = random.uniform(0.0, 2.0 * math.pi, n_components)
    return FourierLift(frequencies, phases, int(seed), float(bandwidth), keep_linear=bool(keep_linear))
