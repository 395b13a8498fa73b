r"""Gaussian noise on sums over a cohort, each plant adding its share: what a plant answers, and how much noise.

**What a plant answers** to a point w: its worst-case risk r(w), and the tangent plane of its mean loss,

    r(u) >= offset + <slope, u> + radius c ||u||_*,
    offset = mean_i L(m_i) - L'(m_i) m_i,    slope = mean_i L'(m_i) y_i x_i

for every u: moves of features are worth at least ``radius c ||u||_*`` (c the loss's Lipschitz constant) and label flips
at least 0 (FDR eq. 9). It is lower than the exact cut by what flips add at w, and no threshold over the rows is in it,
so one row counts for ``1 / N`` in it and nothing more. The norm's weight is public and gets no noise.

**What one row can change** (features in [0, 1]^P; ``row_share`` is ``share / N``, the largest of the cohort's plants;
M is the largest absolute score of any features at w, c the Lipschitz constant): by its replacement

    risk: row_share (L(-M) - L(M)),    offset: row_share L(0),    slope: row_share 2 c sqrt(P + 1)    (L2).

For fixed prices a row's loss in the dual of the risk lies between L(M) and L(-M), and a minimum over prices changes by
no more; tangents of the losses of ``models.losses.classification`` meet zero between 0 and L(0).

**Noise.** Of an answer's budget rho each of the three has a share; ``sigma^2 = sensitivity^2 / (2 share rho)`` is the
variance that ``honest`` plants add together, so each adds ``1 / honest`` of it: what is left of a round with that many
answers is noisy enough. Whole numbers throughout (:mod:`models.cohorts.discrete_gaussian`), roundings counted too.

The server's side is :mod:`models.cohorts.noisy_bounds`.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.basics import FloatArray, ProblemError
from models.cohorts.accountant import epsilon_of, rho_of
from models.cohorts.discrete_gaussian import LEAST_SIGMA, RandBelow, discrete_gaussian
from models.cohorts.fixed_point import Words
from models.losses.base import Loss
from models.problem import SiteProblem
from models.worst_case.risk import site_cut

METHOD: Final = "level-bundle-plain"
"""The method whose server half takes these answers: one point, one plane a cohort."""
BITS: Final = 32
"""Behind the point: 2e-10, far below any noise, and room for large noise above."""
_SHARES: Final[Mapping[str, float]] = {"risk": 0.15, "offset": 0.05, "slope": 0.8}
"""Of an answer's budget: what the slope's noise is multiplied by, the norm of the weights, is above 1."""
_LARGEST_SIGMA = 2**56
"""Ten of it and all plants' answers still fit into the 63 bits of a word."""
_SAME_SHARE = 1e-12
"""Relative: above what two machines make of one share."""


@dataclass(frozen=True)
class NoisePlan:
    """What a run promises and spends: ``rounds`` answers of ``heads`` heads each, over ``cohorts`` cohorts.

    ``within`` is the Euclidean norm, intercept included, of the weights that the lower bound speaks of.
    """

    epsilon: float
    delta: float
    confidence: float
    rounds: int
    within: float
    heads: int = 1
    cohorts: int = 1

    @property
    def rho(self) -> float:
        """Budget of one head's answer in one round."""
        return rho_of(self.epsilon, self.delta) / (self.rounds * self.heads)

    @property
    def deviations(self) -> float:
        """By how many standard deviations a risk is raised and a plane lowered: one of all those of the run."""
        events = 2 * self.rounds * self.heads * self.cohorts
        return math.sqrt(2.0 * math.log(events / (1.0 - self.confidence)))

    def spent(self, rounds: int) -> float:
        """Epsilon at the plan's delta after so many rounds; :class:`ProblemError` past the plan's number."""
        if rounds > self.rounds:
            raise ProblemError(f"the noise was planned for {self.rounds} rounds, and this would be round {rounds}")
        return epsilon_of(self.rho * self.heads * rounds, self.delta)


@dataclass(frozen=True)
class NoiseTerms:
    """What all plants of a cohort must know of its noise, and may check.

    ``row_share``: largest ``share / N`` of its plants. ``honest``: how many plants' noise is enough, at least the
    threshold of answers less the plants that might tell theirs. ``rho``: budget of an answer of one head.
    """

    row_share: float
    honest: int
    rho: float


def row_share(shares: Mapping[str, float], counts: Mapping[str, int]) -> float:
    """The largest ``share / N`` of a cohort's plants, by plant."""
    return max(shares[plant] / counts[plant] for plant in shares)


def check_noise(problem: SiteProblem) -> None:
    """Refuse a plant's problem of which the sensitivities above do not hold.

    Raises
    ------
    ProblemError
        Another loss than one of classes, a support, rows that count unlike, or features outside [0, 1].
    """
    if problem.spec.loss.task != "classification":
        raise ProblemError(f"noise is for losses of classes; {problem.spec.loss.name} is one of numbers")
    if problem.spec.support is not None:
        raise ProblemError("noise is for features without bounds in the risk: set support to unbounded")
    if problem.row_weights is not None:
        raise ProblemError("noise is for rows that count alike: leave row weights and class weights out")
    if not ((problem.features >= 0) & (problem.features <= 1)).all():
        raise ProblemError("noise is scaled for features between 0 and 1: give sensor ranges that hold all rows")


def sensitivities(point: FloatArray, n_features: int, loss: Loss, row_share: float) -> dict[str, float]:
    """By how much (L2) one row replaced can change the sum of a cohort's answers to a point (D,)."""
    plane, intercept = point[:n_features], float(point[n_features:].sum())
    top, bottom = intercept + float(np.maximum(plane, 0.0).sum()), intercept + float(np.minimum(plane, 0.0).sum())
    largest = max(abs(top), abs(bottom))
    ends = loss.value(np.array([-largest, largest, 0.0]))
    return {
        "risk": row_share * float(ends[0] - ends[1]),
        "offset": row_share * float(ends[2]),
        "slope": row_share * 2.0 * loss.lipschitz * math.sqrt(point.shape[0]),
    }


def sigmas(point: FloatArray, n_features: int, loss: Loss, terms: NoiseTerms) -> dict[str, int]:
    """Standard deviation of each plant's noise, in words, by array.

    Raises
    ------
    ProblemError
        Noise too large for the words: too few rows for the budget, or weights far too large.
    """
    found = {}
    for name, change in sensitivities(point, n_features, loss, terms.row_share).items():
        # Rounding moves each entry by less than one on either side of the change.
        words = math.ldexp(change, BITS) + 2.0 * math.sqrt(point.shape[0] if name == "slope" else 1.0)
        needed = words / math.sqrt(2.0 * _SHARES[name] * terms.rho * terms.honest)
        if not needed <= _LARGEST_SIGMA:
            raise ProblemError("the noise does not fit into a sum: ask for fewer rounds, or for a larger epsilon")
        found[name] = max(math.ceil(needed), LEAST_SIGMA)
    return found


def noisy_answer(problem: SiteProblem, point: FloatArray) -> dict[str, FloatArray]:
    """Risk (), and offset () and slope (D,) of the plane, of one plant at a point (D,); no noise is in it yet."""
    spec, count = problem.spec, problem.labels.shape[0]
    rows = problem.features
    if spec.fit_intercept:
        rows = np.hstack([rows, np.ones((count, 1))])
    margins = problem.labels * (rows @ point)
    rates = spec.loss.slope(margins)
    # No tangent meets zero outside [0, L(0)] but by rounding.
    heights = np.clip(spec.loss.value(margins) - rates * margins, 0.0, float(spec.loss.value(np.zeros(1))[0]))
    return {
        "risk": np.array(site_cut(point, problem).risk), "offset": np.array(heights.mean()),
        "slope": (problem.labels * rates) @ rows / count,
    }


def noisy_words(
    problem: SiteProblem, point: FloatArray, share: float, terms: NoiseTerms,
    randbelow: RandBelow = secrets.randbelow,
) -> Words:
    """A plant's part (2 + D,) of its cohort's noisy sum, ready for the mask: risk, offset, slope.

    ``randbelow`` is the operating system's; a simulation gives another. A plant answers a round once: two draws of the
    noise over the same answer would halve its variance.

    Raises
    ------
    ProblemError
        Where the problem does not allow the promise, or the plant's rows count for more than the terms say.
    """
    check_noise(problem)
    own = share / problem.labels.shape[0]
    if own > terms.row_share * (1.0 + _SAME_SHARE):
        raise ProblemError(f"one row counts for {own:.3g} in the sum, the noise is scaled for {terms.row_share:.3g}")
    answer, scales = noisy_answer(problem, point), sigmas(point, problem.features.shape[1], problem.spec.loss, terms)
    parts = []
    for name in _SHARES:
        whole = np.rint(np.ldexp(share * answer[name].ravel(), BITS)).astype(np.int64)
        noise = np.array([discrete_gaussian(scales[name], randbelow) for _ in whole], np.int64)
        parts.append(whole + noise)
    return np.concatenate(parts).view(np.uint64)


def word_count(dimension: int) -> int:
    """Words of an answer of one head with D weights."""
    return 2 + dimension
