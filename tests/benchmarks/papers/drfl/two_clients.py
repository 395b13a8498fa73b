r"""The system of Example 4.1: two clients, each with a distribution on three points of the line, and their mixture.

Everything here is exact. On the line the Wasserstein distance for the cost ``|x - x'|`` is the area between the two
distribution functions, so for distributions on the same sorted points ``x_1 <= ... <= x_k``

    W(P, Q) = sum_j (x_{j+1} - x_j) |F_P(x_j) - F_Q(x_j)|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray

SAMPLES = 1000


@dataclass(frozen=True)
class System:
    """Two clients: points (2, 3), probabilities (2, 3), and the weight of the first client."""

    name: str
    points: FloatArray
    chances: FloatArray
    first_weight: float

    @property
    def weights(self) -> FloatArray:
        """q (2,)."""
        return np.array([self.first_weight, 1.0 - self.first_weight])

    @property
    def mixture(self) -> FloatArray:
        """Probabilities of the six points under ``q_1 P_1 + q_2 P_2``, the true distribution of the system."""
        return np.asarray((self.weights[:, None] * self.chances).ravel())


APART = System(
    "clients apart",
    points=np.array([[0.0, 0.1, 0.2], [1.0, 1.1, 1.2]]),
    chances=np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
    first_weight=0.5,
)
"""Two plants whose measurements lie an order of magnitude farther apart than either one spreads."""

ALIKE = System(
    "clients alike",
    points=np.array([[0.0, 0.5, 1.0], [0.1, 0.6, 1.1]]),
    chances=np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
    first_weight=0.5,
)
"""Two plants whose measurements overlap."""


@dataclass(frozen=True)
class Draws:
    """Systems of the same points: weights (n, 2) of the clients and probabilities (n, 2, 3) of their points."""

    weights: FloatArray
    chances: FloatArray

    @property
    def mixtures(self) -> FloatArray:
        """Probabilities (n, 6) of the mixtures."""
        found = self.weights[:, :, None] * self.chances
        return np.asarray(found.reshape(found.shape[0], -1))


def empirical(system: System, rng: np.random.Generator, count: int) -> Draws:
    """What ``count`` samples of 1,000 rows estimate: the shares of the clients and, within each, of its points.

    A client without a row keeps even chances; with 1,000 rows that does not happen.
    """
    rows = rng.multinomial(SAMPLES, system.mixture, size=count).reshape(count, 2, 3).astype(np.float64)
    own = rows.sum(axis=2)
    chances = np.divide(rows, own[:, :, None], out=np.full_like(rows, 1 / 3), where=own[:, :, None] > 0)
    return Draws(own / SAMPLES, chances)


def anything(rng: np.random.Generator, count: int) -> Draws:
    """Random systems: every number uniform on (0, 1), then divided by the sums that must be 1."""
    weights, chances = rng.uniform(size=(count, 2)), rng.uniform(size=(count, 2, 3))
    return Draws(weights / weights.sum(axis=1, keepdims=True), chances / chances.sum(axis=2, keepdims=True))


def distance(points: FloatArray, chances: FloatArray, others: FloatArray) -> FloatArray:
    """Exact Wasserstein distance (n,) between distributions (n, k) or (k,) on the same points (k,) of the line."""
    order = np.argsort(points, kind="stable")
    between = np.cumsum((chances - others)[..., order], axis=-1)[..., :-1]
    return np.asarray(np.abs(between) @ np.diff(points[order]))


def drfl_radius(system: System, one: Draws, other: Draws) -> FloatArray:
    """Least radius (n,) at which DRFL's set around ``one`` holds ``other``: the clients' larger distance."""
    found = [distance(system.points[s], one.chances[..., s, :], other.chances[..., s, :]) for s in range(2)]
    return np.maximum(*found)


def wafl_radius(system: System, one: Draws, other: Draws) -> FloatArray:
    """Least radius (n,) at which the WAFL ball around the mixture of ``one`` holds the mixture of ``other``."""
    return distance(system.points.ravel(), one.mixtures, other.mixtures)


def truth(system: System) -> Draws:
    """The system itself as the only draw."""
    return Draws(system.weights[None], system.chances[None])


RADII = {"DRFL": drfl_radius, "WAFL": wafl_radius}
