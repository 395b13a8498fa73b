r"""Primal-dual interior point for the client step, with every row's own variable eliminated in closed form.

Row i has a slack variable s_i and three constraints, ``s >= 0``, ``s >= 1 - m`` and ``s >= 1 + m - flip * lam``, with
duals that sum to one. With d1, d2, d3 their dual-over-slack ratios and d their sum, eliminating s leaves the row with
curvature ``(d1 d2 + d1 d3 + 4 d2 d3) / d`` in its margin, ``d3 (d1 + d2) / d`` in ``flip * lam`` and
``-d3 (d1 + 2 d2) / d`` between them: no subtraction, so nothing cancels when the iterates near their limits. What is
left is one positive definite system of D + 1 unknowns. Steps are Mehrotra's predictor and corrector. Use it from a
cold start and when the working set is a large part of the rows; from a good warm start an active set is faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from models.problem import FloatArray
from models.prox.cones import CONES, NormCone
from models.prox.gram import weighted_gram
from models.prox.statement import Statement, dual_norm_value

_STEP_SHARE = 0.995  # how far towards the boundary a step may go
_ITERATION_LIMIT = 80
_NEAR_END = 1e-7
_WORTH_GOING_ON = 0.9  # a gap that falls by less than this, twice over, has met working precision


@dataclass(frozen=True)
class InteriorPoint:
    """Where the interior point ended: primal (weights, multiplier), dual (keep, flip: (n,) each; norm_dual: (P,))."""

    weights: FloatArray
    multiplier: float
    keep: FloatArray
    flip: FloatArray
    norm_dual: FloatArray
    gap: float
    dual_residual: float
    iterations: int


class _Rows:
    """Slacks and duals of the row constraints; axis 0 is the piece: zero, label kept, label flipped (if it can be)."""

    def __init__(self, problem: Statement, weights: FloatArray, multiplier: float) -> None:
        self.problem = problem
        self.flips = math.isfinite(problem.flip)
        self.margins = problem.scores(weights)
        self.multiplier = multiplier
        n = self.margins.size
        self.values = np.empty(n)
        self.slack = np.empty((3 if self.flips else 2, n))
        self._pieces(self.margins, multiplier, self.slack)
        self.values = self.slack.max(axis=0) + 1.0
        self.slack = self.values - self.slack
        self.dual = np.full_like(self.slack, 1.0 / self.slack.shape[0])
        if self.flips:
            share = min(1.0 / 3.0, 0.5 * problem.price / (problem.flip * n)) if problem.price > 0 else 1.0 / 3.0
            self.dual[2] = share
            self.dual[:2] = 0.5 * (1.0 - share)
        self.d_slack = np.zeros_like(self.slack)
        self.d_dual = np.zeros_like(self.slack)

    def _pieces(self, margins: FloatArray, multiplier: float, out: FloatArray) -> None:
        out[0] = 0.0
        np.subtract(1.0, margins, out=out[1])
        if self.flips:
            np.add(1.0 - self.problem.flip * multiplier, margins, out=out[2])

    def scale(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Curvatures of the rows after the elimination: margin, cross, multiplier."""
        self.ratio = self.dual / self.slack
        self.total = self.ratio.sum(axis=0)
        if not self.flips:
            d1, d2 = self.ratio
            self.skew = d2 / self.total
            nothing = np.zeros(0)
            return d1 * self.skew, nothing, nothing
        d1, d2, d3 = self.ratio
        share = d3 / self.total
        self.share = share
        self.skew = (d2 - d3) / self.total
        return (d1 * (d2 + d3) + 4.0 * d2 * d3) / self.total, share * (d1 + 2.0 * d2), share * (d1 + d2)

    def constants(self, target: float, corrected: bool) -> tuple[FloatArray, FloatArray]:
        """Right-hand sides of the rows: for the margins (n,) and for the flip duals (n,)."""
        wanted = target - self.slack * self.dual
        if corrected:
            wanted -= self.d_slack * self.d_dual
        self.constant = wanted / self.slack
        self.need = self.constant.sum(axis=0) - (1.0 - self.dual.sum(axis=0))
        if not self.flips:
            return self.constant[1] - self.skew * self.need, np.zeros(0)
        return self.constant[1] - self.constant[2] - self.skew * self.need, self.constant[2] - self.share * self.need

    def set_step(self, d_weights: FloatArray, d_multiplier: float) -> float:
        """Derive the step of slacks and duals; return the longest one that stays inside."""
        self.d_margins = self.problem.scores(d_weights)
        self.d_multiplier = d_multiplier
        self.d_values = self.need / self.total - self.skew * self.d_margins
        if self.flips:
            self.d_values -= self.share * (self.problem.flip * d_multiplier)
        self.d_slack[0] = self.d_values
        np.add(self.d_values, self.d_margins, out=self.d_slack[1])
        if self.flips:
            np.subtract(self.d_values + self.problem.flip * d_multiplier, self.d_margins, out=self.d_slack[2])
        self.d_dual = self.constant - self.ratio * self.d_slack
        worst = min(float((self.d_slack / self.slack).min()), float((self.d_dual / self.dual).min()))
        return -1.0 / worst if worst < 0.0 else math.inf

    def move(self, length: float) -> None:
        self.margins += length * self.d_margins
        self.values += length * self.d_values
        self.multiplier += length * self.d_multiplier
        self.slack += length * self.d_slack
        self.dual += length * self.d_dual


def solve_interior_point(problem: Statement, start: FloatArray, tolerance: float) -> InteriorPoint:
    r"""Solve the stated problem to a duality gap of ``tolerance`` relative to the objective.

    Parameters
    ----------
    problem : Statement
        The prox problem over n rows and D weights, ``price >= 0``; ``price`` 0 with ``flip`` infinite is the plain
        support vector machine, which has no multiplier.
    start : (D,)
        Weights to start from.
    tolerance : float
        Wanted duality gap over ``1 + |objective|``, both as means over the rows.

    Notes
    -----
    Three passes over the rows an iteration (two products, one Gram matrix), 8-15 iterations.
    """
    return _Solver(problem, start).run(tolerance)


class _Solver:
    def __init__(self, problem: Statement, start: FloatArray) -> None:
        self.problem = problem
        self.n_features = problem.features.shape[1]
        self.robust = problem.price > 0.0 or math.isfinite(problem.flip)
        self.weights = start.copy()
        features = start[: self.n_features]
        size = dual_norm_value(features, problem.norm)
        self.multiplier = size + max(0.1, 0.1 * size) if self.robust else math.inf
        self.rows = _Rows(problem, start, self.multiplier)
        price = problem.price
        if self.rows.flips:
            price = max(price - problem.flip * float(self.rows.dual[2].sum()), 1e-3)
        self.cone: NormCone | None = CONES[problem.norm](features, self.multiplier, price) if self.robust else None
        self.matrix = np.zeros((start.size + self.robust, start.size + self.robust))

    def run(self, tolerance: float) -> InteriorPoint:
        best: InteriorPoint | None = None
        slow = 0
        for iteration in range(_ITERATION_LIMIT + 1):
            point = self.state(iteration)
            scale = self.problem.labels.size + abs(self.objective())
            stuck = best is not None and point.gap > _WORTH_GOING_ON * best.gap and best.gap < _NEAR_END * scale
            slow = slow + 1 if stuck else 0
            if best is None or point.gap < best.gap:
                best = point
            if best.gap <= tolerance * scale or slow > 3 or not self.advance():
                break
        if best is None:
            raise ArithmeticError("the interior point made no iterate")
        return best

    def objective(self) -> float:
        """Primal objective at the iterate, which is feasible."""
        problem, weights = self.problem, self.weights
        away = weights - problem.anchor
        total = float(self.rows.values.sum() + problem.linear @ weights + 0.5 * problem.stiffness * away @ away)
        return total + problem.price * self.multiplier if self.robust else total

    def state(self, iteration: int) -> InteriorPoint:
        """Residuals and duality gap of the iterate."""
        problem, dual = self.problem, self.rows.dual
        flip = dual[2] if self.rows.flips else np.zeros_like(dual[1])
        force = problem.pull_back(dual[1] - flip)
        self.residual = problem.stiffness * (self.weights - problem.anchor) + problem.linear - force
        gap = float(np.vdot(self.rows.slack, dual))
        norm_dual = np.zeros(self.n_features)
        if self.cone is not None:
            pull = self.cone.pull()
            norm_dual = pull[:-1].copy()
            self.residual[: self.n_features] -= norm_dual
            flipped = problem.flip * float(flip.sum()) if self.rows.flips else 0.0
            self.price_residual = problem.price - flipped - float(pull[-1])
            gap += self.cone.complementarity() + abs(self.price_residual) * self.multiplier
        residual = float(self.residual @ self.residual)
        gap += residual / (2.0 * problem.stiffness)
        return InteriorPoint(
            self.weights.copy(), self.multiplier, dual[1].copy(), flip.copy(), norm_dual, gap,
            math.sqrt(residual), iteration,
        )

    def advance(self) -> bool:
        """One predictor-corrector step; False when the system is no longer positive definite."""
        self.assemble()
        factor, failed = dpotrf(self.matrix, lower=1, clean=0)
        if failed:
            return False
        rows, cone = self.rows, self.cone
        degree = rows.slack.size + (cone.degree if cone else 0)
        before = float(np.vdot(rows.slack, rows.dual)) + (cone.complementarity() if cone else 0.0)
        longest = min(self.direction(factor, 0.0, False), 1.0)
        after = float(np.vdot(rows.slack + longest * rows.d_slack, rows.dual + longest * rows.d_dual))
        after += cone.after(longest) if cone else 0.0
        target = max(after / before, 0.0) ** 3 * before / degree
        length = min(_STEP_SHARE * self.direction(factor, target, True), 1.0)
        if not length > 1e-12:
            return False
        self.weights += length * self.step[: self.weights.size]
        rows.move(length)
        if cone:
            self.multiplier += length * float(self.step[-1])
            cone.move(length, self.weights[: self.n_features], self.multiplier)
        return True

    def assemble(self) -> None:
        """Normal matrix in (weights, multiplier); its lower triangle is what counts."""
        problem, matrix, p = self.problem, self.matrix, self.n_features
        size = self.weights.size
        margin, cross, flipped = self.rows.scale()
        matrix[:] = 0.0
        weighted_gram(problem.features, margin, matrix[:p, :p])
        if problem.has_intercept:
            matrix[p, :p] = margin @ problem.features
            matrix[p, p] = margin.sum()
        diagonal = np.einsum("ii->i", matrix[:size, :size])
        diagonal += problem.stiffness
        if self.rows.flips:
            matrix[-1, :size] = -problem.flip * problem.pull_back(cross)
            matrix[-1, -1] = problem.flip**2 * float(flipped.sum())
        if self.cone:
            self.cone.add_curvature(matrix, slice(0, p))

    def direction(self, factor: FloatArray, target: float, corrected: bool) -> float:
        """Solve for the step to complementarity ``target``; return the longest feasible share of it."""
        problem, p, size = self.problem, self.n_features, self.weights.size
        margin, flipped = self.rows.constants(target, corrected)
        right = np.zeros(self.matrix.shape[0])
        right[:size] = problem.pull_back(margin) - self.residual
        if self.cone:
            shift = self.cone.shift(target, corrected)
            right[:p] += shift[:-1]
            right[-1] = shift[-1] - self.price_residual
            if self.rows.flips:
                right[-1] += problem.flip * float(flipped.sum())
        self.step, _ = dpotrs(factor, right, lower=1)
        multiplier = float(self.step[-1]) if self.cone else 0.0
        longest = self.rows.set_step(self.step[:size], multiplier)
        return min(longest, self.cone.set_step(np.append(self.step[:p], multiplier))) if self.cone else longest
