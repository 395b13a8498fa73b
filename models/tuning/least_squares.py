r"""Least squares of one lift with one fold held out, for every radius: what a race of targets is scored by.

An absolute error has a kink at every row, and a dozen cuts of a hundred weights say little of where its risk is least.
The mean square ``q(w) = 1/2 mean (<w, x> + b - y)^2`` has a gradient ``H w - c``, so a gradient at a direction p tells
``H p``, and a dozen directions of the Krylov space of H and c hold most of what there is to learn: there the mean
square falls as it does by conjugate gradients (Hestenes and Stiefel 1952), and stopped early it chooses as a penalty
does (partial least squares; Helland 1988). All radii share the directions. In their span the candidate's own risk is
put together from the mean square alone,

    E L(s z) + c rho max(||w||_2, 1 / kappa),    s^2 = 2 q(w), z standard normal, c the Lipschitz constant of L,

and is least at ``(H + lambda I)^-1 c`` in the span for some lambda, which a scan finds. Scores are of the loss itself;
that errors are taken for normal ones decides only what is scored, not how.

A question is answered as a cut of the Huber loss :data:`SQUARE`, without a ball: at a point with ``||w||_1 + |b|`` at
most 1, as all are, no residual is larger than its epsilon, so it is the square there; and no row weighs more than that,
whoever asks. A dozen gradients tell all others over the same rows, so over rows of which one is new they would tell the
new one: a vault lets its rows count differently in each of their versions, by weights that it keeps to itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from models.basics import Arrays, FloatArray, without_needless_digits
from models.geometry.norms import dual_norm
from models.losses.regression import Huber, Pinball
from models.problem import SiteProblem
from models.tuning.candidates import Candidate
from models.tuning.shared_cuts import DIGITS
from models.tuning.terms import Step, TuningTerms

SQUARE = Huber(epsilon=2.0)
"""Targets and scores of a question are at most 1, so residuals are at most 2."""
MOST_QUESTIONS = 13
"""Gradients of one lift and fold: at zero, and along twelve directions."""
_DEPENDENT = 1e-6  # share of a direction that is left beside the earlier ones, below which it is rounding
_NORMAL = np.array([NormalDist().inv_cdf((k + 0.5) / 64) for k in range(64)])  # equally likely normal errors
_PENALTIES = np.logspace(-9, 2, 67)  # in parts of the mean curvature along the directions
_ROUNDING = 1e-13  # added to the curvature, in the same parts: directions of none are left out


def is_by_squares(terms: TuningTerms, candidates: Sequence[Candidate], heads: int = 1) -> bool:
    """Whether a race goes by squares: in l2, without bounds and mixtures.

    Of a target's loss that is alike above and below; of three classes or more, each against the rest by the logistic
    loss, whose planes are coupled at the end (``class_squares``).
    """
    loss = terms.loss
    plain = terms.unbounded and terms.transport_norm == "l2" and all(each.mixture_radius == 0.0 for each in candidates)
    if loss.task == "classification":
        return plain and terms.coupled and terms.fit_intercept and heads > 2 and loss.name == "logistic"
    return plain and not (isinstance(loss, Pinball) and loss.quantile != 0.5)


def of_squares(problems: Sequence[SiteProblem], row_weights: FloatArray | None = None) -> list[SiteProblem]:
    """The same rows with the mean square for a risk; ``row_weights`` (N,) with mean 1: how often each counts."""
    squared = [replace(each, spec=replace(each.spec, loss=SQUARE, radius=0.0)) for each in problems]
    return squared if row_weights is None else [replace(each, row_weights=row_weights) for each in squared]


def spanned(points: Sequence[FloatArray], dimension: int) -> FloatArray:
    """Orthonormal columns (D, R) that span points (D,) that were asked."""
    return np.asarray(np.linalg.qr(np.stack(points, axis=1))[0]) if points else np.zeros((dimension, 0))


def left_beside(basis: FloatArray, whole: FloatArray) -> FloatArray | None:
    """What of a vector (D,) lies outside orthonormal columns (D, R); None where that is rounding."""
    left = whole
    for _ in range(2):  # once leaves rounding behind
        left = left - basis @ (basis.T @ left)
    return left if np.linalg.norm(left) > _DEPENDENT * np.linalg.norm(whole) else None


def as_question(direction: FloatArray) -> FloatArray:
    """A direction (D,) as it is asked: of absolute sum 1."""
    return without_needless_digits(direction / np.abs(direction).sum(), DIGITS)


@dataclass
class LeastSquares:
    """Gradients of one lift and fold, and the weights (D,) that follow for a candidate."""

    terms: TuningTerms
    n_features: int
    _points: list[FloatArray] = field(default_factory=list)
    _products: list[FloatArray] = field(default_factory=list)
    _pull: FloatArray | None = None
    _square: float = 0.0

    @property
    def dimension(self) -> int:
        """Length of a point."""
        return self.n_features + int(self.terms.fit_intercept)

    def asked(self, candidate: Candidate) -> int:
        """How many gradients are known: of every candidate alike."""
        return len(self._points) + int(self._pull is not None)

    def add(self, candidate: Candidate, point: FloatArray, answers: Mapping[str, Arrays]) -> None:
        """Take in what all sites answered at a point (D,): first at zero, then along directions."""
        told = [answers[site.site_id] for site in self.terms.sites]
        slope = np.average([each["slope"] for each in told], axis=0, weights=self.terms.weights)
        if self._pull is None:
            self._pull = -slope
            self._square = float(np.average([float(each["risk"]) for each in told], weights=self.terms.weights))
            return
        size = float(np.linalg.norm(point))
        self._points.append(point / size)
        self._products.append((slope + self._pull) / size)

    def step(self, candidate: Candidate) -> Step:
        """Direction to ask next, the weights of the candidate, and infinity as a gap while there is one to ask."""
        following, best = self._direction(), self._weights(candidate)
        return Step(best, best, 0.0) if following is None else Step(following, best, math.inf)

    def _direction(self) -> FloatArray | None:
        """The next of the Krylov space, of absolute sum 1; None where the space is closed."""
        if self._pull is None:
            return np.zeros(self.dimension)
        whole = self._products[-1] if self._products else self._pull
        if len(self._points) >= self.dimension:
            return None
        left = left_beside(spanned(self._points, self.dimension), whole)
        return None if left is None else as_question(left)

    def _weights(self, candidate: Candidate) -> FloatArray:
        """Where the candidate's risk, put together from squares, is least in the span of what was asked."""
        if self._pull is None or not self._points:
            return np.zeros(self.dimension)
        points = np.stack(self._points)
        curvature = points @ np.stack(self._products).T
        curvature, pull = (curvature + curvature.T) / 2.0, points @ self._pull
        sizes = points[:, : self.n_features] @ points[:, : self.n_features].T
        scale = float(np.trace(curvature)) / len(points)
        if not scale > 0.0:
            return np.zeros(self.dimension)
        along = [np.zeros(len(points))]
        along += [
            np.linalg.solve(curvature + scale * (each * sizes + _ROUNDING * np.eye(len(points))), pull)
            for each in _PENALTIES
        ]
        squares = [self._square - float(pull @ each) + 0.5 * float(each @ curvature @ each) for each in along]
        tried = [each @ points for each in along]
        risks = [self._risk(candidate, weights, square) for weights, square in zip(tried, squares, strict=True)]
        return np.asarray(tried[int(np.argmin(risks))])

    def _risk(self, candidate: Candidate, weights: FloatArray, square: float) -> float:
        """Worst-case risk of weights (D,) whose mean square is ``square``, were errors normal.

        Infinite for a square below 0, which there is not: a guard told another answer than the gradient's own.
        """
        loss, terms = self.terms.loss, self.terms
        if square < 0.0:
            return math.inf
        error = float(np.mean(loss.value(math.sqrt(2.0 * square) * _NORMAL)))
        size = float(dual_norm(weights[: self.n_features], terms.transport_norm))
        return error + loss.lipschitz * terms.radius * candidate.radius * max(size, 1.0 / candidate.label_flip_cost)
