r"""Primal-dual interior point for the federated problem as a whole, where all rows are at hand.

    min_{w, t >= ||w||_*, lam_g >= t}  sum_g a_g ( radius_g lam_g + mean_i max(0, 1 - m_i, 1 + m_i - kappa_g lam_g) )

(FDR problem 5 with eq. 9 for every site; one site is the centralised DR-SVM). Unbounded support. D + G + 1 unknowns
stay after the elimination of the rows; Mehrotra's predictor and corrector, 15 to 40 iterations, each three passes over
the rows. It needs every row in one place, so it is for research and as reference, never for a real federation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from models.basics import FloatArray, TransportNorm
from models.centralised.hinge_rows import PooledRows, longest
from models.prox.hinge.cones import CONES, NormCone

_STEP_SHARE = 0.995
_ITERATION_LIMIT = 150
_PATIENCE = 4
_WORTH_GOING_ON = 0.9
_NEAR_END = 1e-6
_START = 1.0
_SAFE_CENTRING = 0.3
_SHORT = 0.1
_SHORT_STEPS = 1e-13
"""Share of a diagonal entry that is added to it, so that directions that nothing decides stay short."""


@dataclass(frozen=True)
class PooledProblem:
    """Rows of all sites in solver's units.

    signed : (N, D) rows ``y_i (x_i, 1)``; share : (N,) the weight ``a_g / N_g`` of each row, times how often it
    counts; site : (N,) site index; radius, label_flip_cost, weight : (G,); n_features : P.
    """

    signed: FloatArray
    share: FloatArray
    site: NDArray[np.intp]
    radius: FloatArray
    label_flip_cost: FloatArray
    weight: FloatArray
    transport_norm: TransportNorm
    n_features: int

    @property
    def flips(self) -> NDArray[np.bool_]:
        """Sites that can buy flips: (G,)."""
        return np.asarray((self.radius > 0) & np.isfinite(self.label_flip_cost) & (self.weight > 0))

    @property
    def price(self) -> FloatArray:
        """``a_g radius_g``, what a unit of each site's multiplier costs: (G,)."""
        return self.weight * self.radius


@dataclass(frozen=True)
class PooledPoint:
    """Weights (D,), duals, iterations, relative gap.

    ``keep`` and ``flip`` (N,) are the row duals as site_weights of a row (0..1), ``norm_dual`` (P,) that of the norm.
    """

    weights: FloatArray
    keep: FloatArray
    flip: FloatArray
    norm_dual: FloatArray
    iterations: int
    gap: float


def solve_pooled(problem: PooledProblem, tolerance: float = 1e-10) -> PooledPoint:
    """Iterate until complementarity and residuals are at ``tolerance`` relative to the objective, or progress ends."""
    # An overflow ends the iteration: no step is taken that is not finite, and what the best point is worth is proved.
    with np.errstate(all="ignore"):
        return _iterate(_Solver(problem), tolerance)


def _iterate(solver: _Solver, tolerance: float) -> PooledPoint:
    best, slow = solver.state(0), 0
    for iteration in range(1, _ITERATION_LIMIT + 1):
        if best.gap <= tolerance or slow > _PATIENCE or not solver.advance():
            break
        point = solver.state(iteration)
        # Far from the end residuals times long weights may grow for a while: that is no lack of progress.
        slow = slow + 1 if point.gap > _WORTH_GOING_ON * best.gap and solver.near_end else 0
        if point.gap <= best.gap:
            best = point
    return best


class _Solver:
    def __init__(self, problem: PooledProblem) -> None:
        self.problem = problem
        buyers = np.flatnonzero(problem.flips)
        index = np.zeros(problem.radius.shape[0], dtype=np.intp)
        index[buyers] = np.arange(buyers.shape[0])
        # Where flips are cheap their multiplier is large: it is counted in units that bring it back to order one.
        self.unit = np.minimum(1.0, problem.label_flip_cost[buyers])
        self.price = problem.price[buyers] / self.unit
        self.rest = float(problem.price.sum() - problem.price[buyers].sum())
        self.robust = bool(problem.price.sum() > 0)
        self.weights = np.zeros(problem.signed.shape[1])
        price, target = float(problem.price.sum()), 0.5 / problem.share.shape[0]
        self.cone: NormCone | None = None
        if self.robust:
            kind = CONES[problem.transport_norm]
            least = min(_START, 1.0 / price) if problem.transport_norm != "linf" else 0.0
            self.cone = kind(self.weights[: problem.n_features], least, price, target)
        self.bound = self.cone.multiplier if self.cone is not None else 0.0
        self.short = False
        self.slack = 2.0 * target / self.price
        self.multipliers = self.unit * self.bound + self.slack
        flips = problem.flips[problem.site].astype(np.float64)
        per_site = np.zeros(problem.radius.shape[0])
        per_site[buyers] = problem.label_flip_cost[buyers] / self.unit
        cost = per_site[problem.site]
        self.rows = PooledRows(problem.signed, problem.share, flips, cost, index[problem.site], self.multipliers)
        self.dual = 0.5 * self.price
        self.d_slack, self.d_dual = np.zeros_like(self.slack), np.zeros_like(self.dual)
        size = self.weights.size + buyers.size + int(self.robust)
        self.matrix = np.zeros((size, size))

    def state(self, iteration: int) -> PooledPoint:
        """Residuals of the iterate and its gap relative to the objective."""
        p, size = self.problem.n_features, self.weights.size
        force, bought = self.rows.pull()
        self.residual = np.zeros(self.matrix.shape[0])
        self.residual[:size] = -force
        self.residual[size : size + self.price.size] = self.price - bought - self.dual
        inner, norm_dual = self._complementarity(), np.zeros(p)
        if self.cone is not None:
            pull = self.cone.pull()
            norm_dual = pull[:-1].copy()
            self.residual[:p] -= norm_dual
            self.residual[-1] = self.rest + float(self.unit @ self.dual) - float(pull[-1])
        unknowns = np.concatenate([self.weights, self.multipliers, [self.bound] * int(self.robust)])
        objective = float(self.problem.share @ self.rows.loss + self.price @ self.multipliers) + self.rest * self.bound
        lost = float(np.abs(self.residual) @ np.abs(unknowns))
        self.near_end = inner <= _NEAR_END * objective
        share = self.problem.share
        keep, flip = self.rows.dual[1] / share, self.rows.flips * self.rows.dual[2] / share
        gap = (inner + lost) / max(objective, 1e-300)
        if self._separated():
            gap = 0.0
        return PooledPoint(self.weights.copy(), keep, flip, norm_dual, iteration, gap)

    def _separated(self) -> bool:
        """Whether the weights separate the rows and nothing costs anything: longer weights have no risk at all."""
        return not self.robust and float((self.problem.signed @ self.weights).min()) > 0.0

    def advance(self) -> bool:
        """One predictor-corrector step; False where no step is left at working precision."""
        if self.cone is not None and not self.cone.complementarity() > 0.0:
            return False
        try:
            self._assemble()
            factor = cho_factor(self.matrix, lower=True, check_finite=False)
        except (LinAlgError, ZeroDivisionError):  # the cone has collapsed to its tip, at working precision
            return False
        degree = self.rows.slack.size + self.slack.size + (self.cone.degree if self.cone else 0)
        before = self._complementarity()
        if not before > 0.0:
            return False
        ahead = min(self._direction(factor, 0.0, 0.0), 1.0)
        # The predictor takes complementarity down in proportion, but for the product of the steps.
        left = (1.0 - ahead) + ahead * ahead * self._curved_change() / before
        centring = min(max(left, 0.0), 1.0) ** 3
        # A second-order term may lead astray after a step that could not be taken: then mere centring comes first.
        correction = 0.0 if self.short else 1.0
        if self.short:
            centring = max(centring, _SAFE_CENTRING)
        length = min(_STEP_SHARE * self._direction(factor, centring * before / degree, correction), 1.0)
        self.short = length < _SHORT
        if not (1e-12 < length <= 1.0 and np.isfinite(self.step).all()):
            return False
        self._move(length)
        return True

    def _assemble(self) -> None:
        size, buyers = self.weights.size, self.price.size
        self.matrix[:] = 0.0
        self.rows.add_curvature(self.matrix)
        self.ratio = self.dual / self.slack
        for g in range(buyers):
            own = size + g
            self.matrix[own, own] += self.ratio[g]
            self.matrix[own, -1] -= self.ratio[g] * self.unit[g]
            self.matrix[-1, own] -= self.ratio[g] * self.unit[g]
        if self.cone is not None:
            self.matrix[-1, -1] += float(self.ratio @ np.square(self.unit))
            self.cone.add_curvature(self.matrix)
        diagonal = np.einsum("ii->i", self.matrix)
        diagonal += _SHORT_STEPS * diagonal + np.finfo(np.float64).tiny

    def _direction(self, factor: tuple[FloatArray, bool], target: float, correction: float) -> float:
        """Solve for the step to complementarity ``target``; return how much of it stays inside."""
        p, size, buyers = self.problem.n_features, self.weights.size, self.price.size
        right = -self.residual
        margin, flipped = self.rows.right_hand_side(target, correction)
        right[:size] += margin
        right[size : size + buyers] += flipped
        constant = (target - self.slack * self.dual - correction * self.d_slack * self.d_dual) / self.slack
        right[size : size + buyers] += constant
        if self.cone is not None:
            shift = self.cone.shift(target, correction)
            right[:p] += shift[:-1]
            right[-1] += float(shift[-1]) - float(self.unit @ constant)
        self.step = cho_solve(factor, right, check_finite=False)
        bound = float(self.step[-1]) if self.cone is not None else 0.0
        multipliers = self.step[size : size + buyers]
        self.d_slack = multipliers - self.unit * bound
        self.d_dual = constant - self.ratio * self.d_slack
        far = self.rows.set_step(self.step[:size], multipliers)
        far = min(far, longest(self.slack, self.d_slack), longest(self.dual, self.d_dual))
        if self.cone is None:
            return far
        lowest = self.cone.set_step(np.append(self.step[:p], bound))
        return min(far, -1.0 / lowest) if lowest < 0.0 else far

    def _complementarity(self) -> float:
        own = self.rows.complementarity() + float(self.slack @ self.dual)
        return own + (self.cone.complementarity() if self.cone is not None else 0.0)

    def _curved_change(self) -> float:
        own = self.rows.curved_change() + float(self.d_slack @ self.d_dual)
        return own + (self.cone.curved_change() if self.cone is not None else 0.0)

    def _move(self, length: float) -> None:
        size, buyers = self.weights.size, self.price.size
        self.weights = self.weights + length * self.step[:size]
        self.multipliers = self.multipliers + length * self.step[size : size + buyers]
        self.slack = self.slack + length * self.d_slack
        self.dual = self.dual + length * self.d_dual
        self.rows.move(length)
        if self.cone is not None:
            self.bound += length * float(self.step[-1])
            self.cone.move(length)
