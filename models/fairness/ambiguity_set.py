r"""The integrated ambiguity set of relative fairness, its size, and when learning over it stays convex.

    Lambda_phi(A, B) = { (a - phi b) / (1 - phi) : a in A, b in B },      0 <= phi < 1      (RF eq. 5)

for capped simplices A and B over the n sites. Its members sum to 1 but may have negative entries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.capped_simplex import CappedSimplex
from models.geometry.linear_program import LinearProgram, solve_linear_program

_LARGEST_PHI = 0.99
"""The set grows without bound as phi nears 1: here ``||Lambda||_1`` is at most 199."""
_FEW = 8
"""Sites up to which all orders are tried where caps differ: 40,320 of them."""
_SECONDS = 5.0
"""Time for a search over sets of sites."""


@dataclass(frozen=True)
class RelativeSet:
    """Lambda_phi(A, B): ``worst`` is A (what is pressed down), ``best`` is B (what it is measured against)."""

    worst: CappedSimplex
    best: CappedSimplex
    phi: float

    def __post_init__(self) -> None:
        """Refuse a phi outside [0, 1) and sets over different sites."""
        if not (math.isfinite(self.phi) and 0.0 <= self.phi < 1.0):
            raise ProblemError(f"phi must be at or above 0 and below 1, got {self.phi}")
        if self.worst.size != self.best.size:
            raise ProblemError(f"A is over {self.worst.size} sites and B over {self.best.size}; both need the same")

    @staticmethod
    def of_shares(n_sites: int, phi: float, alpha: float, beta: float) -> RelativeSet:
        """Lambda_phi(Delta_alpha, Delta_beta) over ``n_sites``."""
        return RelativeSet(CappedSimplex.of_share(n_sites, alpha), CappedSimplex.of_share(n_sites, beta), phi)

    @staticmethod
    def of_weights(weights: FloatArray, phi: float, alpha: float, beta: float) -> RelativeSet:
        """Over sites that count for ``weights`` (n,): caps ``a_g / alpha``, ``a_g / beta``; equal ones: RF's sets."""
        return RelativeSet(CappedSimplex(weights / alpha), CappedSimplex(weights / beta), phi)

    @property
    def size(self) -> int:
        """Number of sites n."""
        return self.worst.size

    def member(self, losses: FloatArray) -> FloatArray:
        """A member lambda (n,) with the largest <lambda, losses>."""
        return np.asarray((self.worst.worst(losses) - self.phi * self.best.best(losses)) / (1.0 - self.phi))

    def largest(self, losses: FloatArray) -> float:
        """``max_{lambda} <lambda, losses> = (max_A <a, f> - phi min_B <b, f>) / (1 - phi)`` (RF eq. 6)."""
        return self.discrepancy(losses) / (1.0 - self.phi)

    def totals(self, risks: FloatArray) -> FloatArray:
        """:meth:`largest` of each row of risks (K, n), infinite where one of them is not known; (K,)."""
        return np.array([self.largest(each) if np.isfinite(each).all() else math.inf for each in risks])

    def discrepancy(self, losses: FloatArray) -> float:
        """Relative fairness discrepancy ``max_A <a, f> - phi min_B <b, f>`` (RF Definition 2)."""
        return self.worst.largest(losses) - self.phi * self.best.smallest(losses)

    def sum_norm(self) -> float:
        r"""``||Lambda||_1 = max_lambda sum_i |lambda_i|``, exactly; at most ``(1 + phi)/(1 - phi)``.

        Members sum to 1, so ``||lambda||_1`` is twice the positive part less 1 (RF Lemma 7), and the largest positive
        part over a set S of sites is ``min(1, A(S)) - phi max(0, 1 - B(not S))``, X(S) the caps' sum. Equal caps: all
        sizes of S are tried. Caps that differ: a small mixed-integer program (were it to stop early, its upper bound).
        """
        ceiling = (1.0 + self.phi) / (1.0 - self.phi)
        if self.phi == 0.0:
            return 1.0
        if self.worst.alike and self.best.alike:
            sizes = np.arange(self.size + 1)
            top = np.minimum(1.0, sizes * self.worst.caps[0])
            low = np.maximum(0.0, 1.0 - (self.size - sizes) * self.best.caps[0])
            part = float((top - self.phi * low).max())
        else:
            part = _largest_part(self.worst.caps, self.best.caps, self.phi)
        return float(np.clip(2.0 * part / (1.0 - self.phi) - 1.0, 1.0, ceiling))

    def skewness(self) -> float:
        r"""``s(Lambda) = max_lambda n sum_i |lambda_i - 1/n|^2 + 1 = n max_lambda ||lambda||^2`` (RF Theorem 4).

        With equal caps all corners of Lambda are orders of one vector, (worst member in falling order) less phi times
        (best member in rising order), so this is exact for every n. For ``alpha = beta <= 1/2`` it is
        ``(1 + phi^2) / ((1 - phi)^2 alpha)`` when ``alpha n`` is whole; the form of RF Proposition 5 leaves out the
        ``1 - 2 alpha`` that the sites with weight 0 add. Caps that differ: every order of up to 8 sites; over more of
        them what it is at most, ``n (max_A ||a||^2 + phi^2 max_B ||b||^2 - 2 phi min <a, b>) / (1 - phi)^2``, each
        part for itself.
        """
        if self.worst.alike and self.best.alike:
            corner = self.member(np.arange(self.size, 0, -1.0))
            return self.size * float(corner @ corner)
        if self.size > _FEW:
            squares = _largest_square(self.worst) + self.phi**2 * _largest_square(self.best)
            product = max(self.best.smallest(_floors(self.worst)), self.worst.smallest(_floors(self.best)))
            return self.size * (squares - 2.0 * self.phi * product) / (1.0 - self.phi) ** 2
        orders = np.array(list(permutations(range(self.size))))
        corners = (self.worst.filled(orders) - self.phi * self.best.filled(orders[:, ::-1])) / (1.0 - self.phi)
        return self.size * float((corners**2).sum(axis=1).max())


def _largest_square(members: CappedSimplex) -> float:
    """What ``||a||^2`` of a member is at most: ``max_a sum_i a_i min(cap_i, 1)``, which the largest caps have."""
    caps = np.minimum(members.caps, 1.0)
    return float(members.filled(np.argsort(-caps)) @ caps)


def _floors(members: CappedSimplex) -> FloatArray:
    """What each site has at least (n,): all that the others' caps leave."""
    return np.asarray(np.maximum(0.0, 1.0 - (members.caps.sum() - members.caps)))


def _largest_part(worst: FloatArray, best: FloatArray, phi: float) -> float:
    """``max_S min(1, sum_S worst) - phi max(0, 1 - sum_{not S} best)`` over sets S of sites."""
    n = worst.shape[0]
    rows = np.zeros((2, n + 2))
    rows[0, :n], rows[0, n] = worst, -1.0
    rows[1, :n], rows[1, n + 1] = best, -1.0
    program = LinearProgram(
        np.append(np.zeros(n), [-1.0, phi]), rows, np.array([0.0, -np.inf]), np.array([np.inf, best.sum() - 1.0]),
        np.zeros(n + 2), np.append(np.ones(n), [1.0, np.inf]), np.append(np.ones(n, dtype=bool), [False, False]),
    )
    found = solve_linear_program(program, _SECONDS)
    if not found.solved:
        return -found.bound if math.isfinite(found.bound) else 1.0
    chosen = np.round(found.point[:n])
    return min(1.0, float(chosen @ worst)) - phi * max(0.0, 1.0 - float((1.0 - chosen) @ best))


@dataclass(frozen=True)
class Convexity:
    r"""Whether ``||Lambda||_1 < 1 + m_f / (2 M_f)``, where the proof of RF Theorem 3 holds (its Assumption 8).

    The theorem itself states the wider ``1 + 2 m_f / M_f``, and so contradicts its own proof: the step sizes there grow
    by ``m_f/4 - M_f (||Lambda||_1 - 1)/2``, which is above 0 under Assumption 8 only. Between the two every
    <lambda, f> is still strongly convex (Proposition 10), so the solution is one, but no rate is proven.

    ``sum_norm`` is ``||Lambda||_1``, ``limit`` the right side of Assumption 8, ``stated`` that of the theorem,
    ``largest_phi`` a phi below which Assumption 8 holds for every A and B.
    """

    sum_norm: float
    limit: float
    stated: float
    largest_phi: float

    @property
    def holds(self) -> bool:
        """Whether the condition of the proof holds."""
        return self.sum_norm < self.limit

    def __str__(self) -> str:
        sign, word = ("<", "holds") if self.holds else (">=", "fails")
        text = f"||Lambda||_1 = {self.sum_norm:.6g} {sign} 1 + m_f/(2 M_f) = {self.limit:.6g}: the condition {word}"
        if self.holds:
            return text
        if self.sum_norm < self.stated:
            text += f" (the paper's theorem states 1 + 2 m_f/M_f = {self.stated:.6g}, its proof needs Assumption 8)"
        return f"{text}; convergence is not proven, take phi below {self.largest_phi:.4g} or a larger ridge"


def check_convexity(ambiguity: RelativeSet, strong_convexity: float, smoothness: float) -> Convexity:
    """Check the condition under which RF Theorem 3 is proven, that of Assumption 8.

    ``strong_convexity`` m_f: the smallest curvature of any site's loss; ``smoothness`` M_f: the largest.

    Whether the condition holds, :attr:`Convexity.holds` says; :class:`ProblemError` unless ``0 <= m_f <= M_f`` and
    M_f is above 0.
    """
    m, M = strong_convexity, smoothness
    if not (math.isfinite(m) and math.isfinite(M) and 0.0 <= m <= M and M > 0.0):
        raise ProblemError(f"curvatures must satisfy 0 <= m_f <= M_f with M_f above 0, got m_f = {m} and M_f = {M}")
    return Convexity(ambiguity.sum_norm(), 1.0 + m / (2.0 * M), 1.0 + 2.0 * m / M, m / (m + 4.0 * M))


def balanced_phi(worst: float, best: float, curvature: float) -> float:
    r"""The phi that balances absolute and relative unfairness (RF eq. 8), clipped to [0, 0.99].

    The positive root of ``3/4 c phi^2 + b phi - a/2 = 0`` for a = ``worst``, b = ``best``, c = ``curvature``, all at
    the solution with phi = 0: ``a = <a*, f>``, ``b = <b*, f>``, and ``c = g' H^-1 g`` with ``g = sum_i b*_i grad f_i``
    and ``H = sum_i a*_i hess f_i``.

    :class:`ProblemError` for a number below 0 or not finite.
    """
    for name, value in (("worst", worst), ("best", best), ("curvature", curvature)):
        if not (math.isfinite(value) and value >= 0.0):
            raise ProblemError(f"{name} must be a finite number at or above 0, got {value}")
    if worst == 0.0:
        return 0.0
    below = best + math.sqrt(best * best + 1.5 * worst * curvature)
    return min(worst / below, _LARGEST_PHI) if below > 0.0 else _LARGEST_PHI
