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

from models.basics import FloatArray, TransportNorm
from models.solvers.hinge_interior_point import HingeInteriorPoint
from models.solvers.hinge_rows import HingeRows, Place, SiteRows
from models.solvers.norm_cones import CONES

_ITERATION_LIMIT = 150  # several times what any problem of the tests takes
_PATIENCE = 4  # steps near the end without progress worth the name, after which it ends
_WORTH_GOING_ON = 0.9  # a gap that falls by less is no progress
_NEAR_END = 1e-6  # complementarity over the objective from which on the gap must fall
_START = 1.0  # least bound of the norm to start from, in units in which features are of order one
_EVEN = 2.0 / 3.0  # complementarity of the rows to start near: each loss 1 above its highest piece
_SAFE_CENTRING = 0.3  # after a step that could not be taken
_SHORT = 0.1  # length of a step that could not be taken
_SHORT_STEPS = 1e-13
"""Share of a diagonal entry that is added to it, so that directions that nothing decides stay short."""


@dataclass(frozen=True)
class PooledProblem:
    """Rows of all sites in solver's units.

    signed : (N, D) rows ``y_i (x_i, 1)``; share : (N,) the weight ``a_g / N_g`` of each row, times how often it
    counts; site : (N,) site index, rising; radius, label_flip_cost, weight : (G,); n_features : P.
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
        return _iterate(_Run(problem), tolerance)


def _iterate(run: _Run, tolerance: float) -> PooledPoint:
    best, slow = run.point(0), 0
    for iteration in range(1, _ITERATION_LIMIT + 1):
        if best.gap <= tolerance or slow > _PATIENCE or not run.advance():
            break
        # Far from the end residuals times long weights may grow for a while: that is no lack of progress.
        slow = slow + 1 if run.gap > _WORTH_GOING_ON * best.gap and run.near_end else 0
        if run.gap <= best.gap:
            best = run.point(iteration)
    return best


class _Run(HingeInteriorPoint):
    """The sites' multipliers stand between the weights and the bound, each with a slack of its own above the bound."""

    def __init__(self, problem: PooledProblem) -> None:
        self.problem = problem
        buyers = np.flatnonzero(problem.flips)
        weights, price = np.zeros(problem.signed.shape[1]), float(problem.price.sum())
        # Where flips are cheap their multiplier is large: it is counted in units that bring it back to order one.
        self._unit = np.minimum(1.0, problem.label_flip_cost[buyers])
        self._price = problem.price[buyers] / self._unit
        self._rest = price - float(problem.price[buyers].sum())
        target, cone = 0.5 / problem.share.shape[0], None
        if price > 0:
            least = min(_START, 1.0 / price) if problem.transport_norm != "linf" else 0.0
            cone = CONES[problem.transport_norm](weights[: problem.n_features], least, price, target)
        self._slack, self._dual = 2.0 * target / self._price, 0.5 * self._price
        self._multipliers = self._unit * (cone.multiplier if cone else 0.0) + self._slack
        self._own = slice(weights.size, weights.size + buyers.size)
        self._short = False
        flips = problem.flips[problem.site]
        self._rows = [part for part in (np.flatnonzero(flips), np.flatnonzero(~flips)) if part.size]
        parts = [self._part(rows, buyers) for rows in self._rows]
        super().__init__(parts, cone, weights, problem.n_features, self._own.stop + int(price > 0))
        self._degree += self._slack.size

    def _part(self, index: NDArray[np.intp], buyers: NDArray[np.intp]) -> tuple[HingeRows, Place]:
        """Some of the rows, which all can flip or all cannot, and the place of their multipliers."""
        problem = self.problem
        rows, share, site = problem.signed[index], problem.share[index], problem.site[index]
        part = HingeRows(rows, np.inf, share)
        if problem.flips[site[0]]:
            part = SiteRows(rows, problem.label_flip_cost[buyers] / self._unit, share, np.searchsorted(buyers, site))
        part.centre(np.zeros(index.size), self._multipliers, _EVEN)
        return part, self._own

    def _measure(self) -> None:
        """Residuals of the iterate and its gap relative to the objective."""
        residual = np.zeros(self._matrix.shape[0])
        residual[self._own] = self._price - self._dual
        if self.cone:
            residual[-1] = self._rest + float(self._unit @ self._dual)
        self._weigh(residual)
        self._complementarity += float(self._slack @ self._dual)
        unknowns = np.concatenate([self.weights, self._multipliers, [self.bound] * int(self.cone is not None)])
        losses = sum(float(rows.share @ rows.slack[0]) for rows, _ in self.parts)
        objective = losses + float(self._price @ self._multipliers) + self._rest * self.bound
        lost = float(np.abs(residual) @ np.abs(unknowns))
        self.near_end = self._complementarity <= _NEAR_END * objective
        self.gap = 0.0 if self._separated() else (self._complementarity + lost) / max(objective, 1e-300)

    def point(self, iteration: int) -> PooledPoint:
        """Where the run stands."""
        keep, flip = np.zeros_like(self.problem.share), np.zeros_like(self.problem.share)
        for index, (rows, _) in zip(self._rows, self.parts, strict=True):
            keep[index] = rows.dual[1] / rows.share
            flip[index] = rows.dual[2] / rows.share if rows.can_flip else 0.0
        norm_dual = self.cone.pull()[1:].copy() if self.cone else np.zeros(self.problem.n_features)
        return PooledPoint(self.weights.copy(), keep, flip, norm_dual, iteration, self.gap)

    def _separated(self) -> bool:
        """Whether the weights separate the rows and nothing costs anything: longer weights have no risk at all."""
        return self.cone is None and float((self.problem.signed @ self.weights).min()) > 0.0

    def advance(self) -> bool:
        """One predictor-corrector step; False where no step is left at working precision."""
        return not (self.cone and not self.cone.complementarity() > 0.0) and super().advance()

    def _safeguard(self, predicted: float) -> tuple[float, float]:
        """A second-order term may lead astray after a step that could not be taken: then mere centring comes first."""
        return (0.0, _SAFE_CENTRING) if self._short else (1.0, 0.0)

    def _assemble(self) -> None:
        super()._assemble()
        matrix, own, unit = self._matrix, self._own, self._unit
        self._ratio = self._dual / self._slack
        if own.stop > own.start:
            matrix[own, own] += np.diag(self._ratio)
            matrix[-1, own] -= self._ratio * unit
            matrix[-1, -1] += float(self._ratio @ np.square(unit))
        diagonal = np.einsum("ii->i", matrix)
        diagonal += _SHORT_STEPS * diagonal + np.finfo(np.float64).tiny

    def _right_hand_side(self, target: float, correction: float) -> FloatArray:
        right = super()._right_hand_side(target, correction)
        self._constant = target / self._slack - self._dual
        if target > 0.0:
            self._constant -= correction * self._d_slack * self._d_dual / self._slack
        right[self._own] += self._constant
        if self.cone:
            right[-1] -= float(self._unit @ self._constant)
        return right

    def _set_step(self) -> float:
        reach = super()._set_step()
        self._d_slack = self._step[self._own] - self._unit * (float(self._step[-1]) if self.cone else 0.0)
        self._d_dual = self._constant - self._ratio * self._d_slack
        lowest = (self._d_slack / self._slack).min(initial=0.0), (self._d_dual / self._dual).min(initial=0.0)
        return min(reach, *map(float, lowest))

    def _curved_change(self) -> float:
        return super()._curved_change() + float(self._d_slack @ self._d_dual)

    def _move(self, length: float) -> None:
        self._short = length < _SHORT
        self._multipliers = self._multipliers + length * self._step[self._own]
        self._slack = self._slack + length * self._d_slack
        self._dual = self._dual + length * self._d_dual
        super()._move(length)
