r"""Primal-dual interior point for the client step, with every row's own variable eliminated in closed form.

Row i has a slack variable s_i and three constraints, ``s >= 0``, ``s >= 1 - m`` and ``s >= 1 + m - flip * lam``, with
duals that sum to one. With d1, d2, d3 their dual-over-slack ratios and d their sum, eliminating s leaves the row with
curvature ``(d1 d2 + d1 d3 + 4 d2 d3) / d`` in its margin, ``d3 (d1 + d2) / d`` in ``flip * lam`` and
``-d3 (d1 + 2 d2) / d`` between them: no subtraction, so nothing cancels when the iterates near their limits. What is
left is one positive definite system of D + 1 unknowns. Steps are Mehrotra's predictor and corrector.

Prefer it from a cold start and where kinks tie (duplicate rows, weights that vanish); it needs no guess. Near the end
of a run the pattern of active pieces shows, and `active_set` finishes in one solve what would take several steps.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from models.basics import FloatArray
from models.prox.hinge.cones import CONES, NormCone
from models.prox.hinge.statement import Iterate, Statement

_STEP_SHARE = 0.995  # how far towards the boundary a step may go
_SHORTEST_STEP = 1e-10
_SAFE_TARGET = 0.3
_SETTLING = 1e-3
_TOO_MANY_FLIPS = 4.0  # over what the radius pays for, at the start
_NARROW = 0.01  # complementarity to start from, in units of the hinge
_WIDE = 1e8
_BALANCED = 5.0
_BLOCK_VALUES = 1 << 16  # values of the rows read at a time: they are still in the cache when they are read again


class InteriorPoint:
    """One run; `advance` makes a step, `iterate` reads off where it stands.

    Parameters
    ----------
    problem : Statement
        ``price`` 0 with ``flip`` infinite is the plain support vector machine, which has no multiplier.
    weights : (D,)
        Start. Slacks and duals of the rows start centred for it.
    floor : float
        The multiplier starts at or above it; best its optimum for these weights.
    target : float
        Complementarity to start from: the width, in units of the hinge, in which pieces count as near.
    """

    def __init__(self, problem: Statement, weights: FloatArray, floor: float, target: float) -> None:
        self.problem = problem
        self.weights = weights.copy()
        self.margins = problem.rows @ weights
        self.multiplier = floor if problem.is_robust else 0.0
        self.slack, self.dual = centred_rows(problem, self.margins, self.multiplier, target)
        self.cone: NormCone | None = None
        if problem.is_robust:
            self._raise_multiplier(target)
            price = max(problem.price - self._flipped(self.dual), 0.1 * problem.price, 1e-3 * target)
            least = self.multiplier
            self.cone = CONES[problem.norm](weights[: problem.n_features], least, price, target)
            if problem.can_flip:
                self.slack[2] += problem.flip * (self.cone.multiplier - least)
            self.multiplier = self.cone.multiplier
        size = weights.size + int(problem.is_robust)
        self._matrix = np.zeros((size, size))
        self._astray = 0
        self._settled = False
        self._degree = self.slack.size + (self.cone.degree if self.cone else 0)
        self._measure()

    def _raise_multiplier(self, target: float) -> None:
        """Raise the multiplier until the flips that the start supposes cost no more than a few times what they may."""
        problem = self.problem
        if not problem.price > 0.0 or self._flipped(self.dual) <= _TOO_MANY_FLIPS * problem.price:
            return
        # a row that flips by a little at the start has dual weight target / (flip * raise) after the raise
        step = max(target * float(np.count_nonzero(self.dual[2] > 0.1)) / problem.price, target / problem.flip)
        while self._flipped(self.dual) > _TOO_MANY_FLIPS * problem.price:
            self.multiplier += step
            step *= 2.0
            self.slack, self.dual = centred_rows(problem, self.margins, self.multiplier, target)

    def _flipped(self, dual: FloatArray) -> float:
        return self.problem.flip * float(dual[2].sum()) if self.problem.can_flip else 0.0

    def _measure(self) -> None:
        """Residuals, complementarity and duality gap at the iterate."""
        problem, dual = self.problem, self.dual
        force = dual[1] - dual[2] if problem.can_flip else dual[1]
        self._away = self.weights - problem.anchor
        self._residual = problem.stiffness * self._away
        self._residual += problem.linear
        self._residual -= force @ problem.rows
        self._complementarity = float(np.vdot(self.slack, dual))
        self.gap = 0.0
        self._price_residual = 0.0
        if self.cone:
            pull = self.cone.pull()
            self._residual[: problem.n_features] -= pull[:-1]
            self._price_residual = problem.price - self._flipped(dual) - float(pull[-1])
            self._complementarity += self.cone.complementarity()
            self.gap = abs(self._price_residual) * self.multiplier
        self.gap += self._complementarity + float(self._residual @ self._residual) / (2.0 * problem.stiffness)

    @property
    def imbalance(self) -> float:
        """Duality gap over the complementarity: large where the start is too near the boundary for its residuals."""
        return self.gap / self._complementarity

    @property
    def closeness(self) -> float:
        """Mean complementarity product: how near the iterate is to the end of the central path."""
        return self._complementarity / self._degree

    def objective(self) -> float:
        """Primal objective; the iterate is primal feasible, and its first slack is the row's own variable."""
        problem = self.problem
        total = problem.constant + float(self.slack[0].sum()) + problem.price * self.multiplier
        return total + float(problem.linear @ self.weights + 0.5 * problem.stiffness * (self._away @ self._away))

    def iterate(self) -> Iterate:
        """Where the run stands."""
        pull = self.cone.pull()[:-1] if self.cone else np.zeros(self.problem.n_features)
        flip = self.dual[2] if self.problem.can_flip else np.zeros(0)
        return Iterate(
            weights=self.weights.copy(),
            multiplier=self.multiplier if self.cone else np.inf,
            keep=self.dual[1].copy(),
            flip=flip.copy(),
            norm_dual=pull.copy(),
            gap=self.gap,
            objective=self.objective(),
        )

    def advance(self) -> bool:
        """Make one predictor-corrector step; False when working precision allows no further one."""
        self._assemble()
        self._factor, failed = dpotrf(self._matrix.T, lower=0, clean=0)
        if failed:
            return False
        unmet = self.dual.sum(axis=0) - 1.0
        reach = self._solve(-self.dual, 0.0, 0.0, -1.0)
        length = min(-1.0 / reach, 1.0) if reach < 0.0 else 1.0
        curved = float(np.vdot(self._step_slack, self._step_dual)) + (self.cone.curved_change() if self.cone else 0.0)
        left = max((1.0 - length) * self._complementarity + length * length * curved, 0.0)
        target = (left / self._complementarity) ** 3 * self.closeness
        # The second-order term belongs to a whole step; after a short predictor it may lead astray, even in circles.
        # Where it did so more than once, plain steps of the path-following kind take over.
        correction = (1.0, length * length, 0.0)[min(self._astray, 2)]
        if self._astray > 1:
            target = max(target, _SAFE_TARGET * self.closeness)
        constant = target - (correction * self._step_slack) * self._step_dual
        constant /= self.slack
        constant -= self.dual
        reach = self._solve(constant, target, correction, constant.sum(axis=0) + unmet)
        length = min(-_STEP_SHARE / reach, 1.0) if reach < 0.0 else 1.0
        if not length > _SHORTEST_STEP:
            return False
        before = self._complementarity
        self._move(length)
        self._astray += int(self._complementarity > before)
        return True

    def _move(self, length: float) -> None:
        self.weights += length * self._step[: self.weights.size]
        self.slack += length * self._step_slack
        self.dual += length * self._step_dual
        if self.cone:
            self.multiplier += length * float(self._step[-1])
            self.cone.move(length)
        self._measure()
        if not self._settled and self.closeness < _SETTLING:
            self._settled = True
            self._resettle()

    def _resettle(self) -> None:
        """Recompute the slacks from the point, once, while they are still far above rounding.

        They move by steps, because one that is recomputed near the end rounds to nothing; but a start of large numbers
        leaves its rounding in them.
        """
        problem, features = self.problem, self.weights[: self.problem.n_features]
        margins = problem.rows @ self.weights
        slack = self.slack.copy()
        np.add(slack[0], margins - 1.0, out=slack[1])
        if problem.can_flip:
            np.subtract(slack[0] + (problem.flip * self.multiplier - 1.0), margins, out=slack[2])
        if float(slack.min()) > 0.0 and (self.cone is None or self.cone.resettle(features, self.multiplier)):
            self.slack = slack
            self._measure()

    def _assemble(self) -> None:
        """Normal matrix in (weights, multiplier), lower triangle."""
        problem, matrix = self.problem, self._matrix
        size, d = matrix.shape[0], self.weights.size
        self._ratio = ratio = self.dual / self.slack
        if problem.can_flip:
            d1, d2, d3 = ratio
            both = d1 + d2
            total = both + d3
            self._share = d3 / total
            self._skew = (d2 - d3) / total
            margin = (d1 * (d2 + d3) + 4.0 * d2 * d3) / total
        else:
            total = ratio[0] + ratio[1]
            self._skew = ratio[1] / total
            margin = ratio[0] * self._skew
        self._total = total
        matrix[:] = 0.0
        weighted_gram(problem.rows, margin, matrix[:d, :d])
        matrix.ravel()[: d * size : size + 1] += problem.stiffness
        if problem.can_flip:
            matrix[-1, :d] = (self._share * (both + d2)) @ problem.rows
            matrix[-1, :d] *= -problem.flip
            matrix[-1, -1] = problem.flip**2 * float(self._share @ both)
        if self.cone:
            self.cone.add_curvature(matrix)

    def _solve(self, constant: FloatArray, target: float, correction: float, need: FloatArray | float) -> float:
        """Solve for the step with the row constants given; return its most negative relative change."""
        problem, d = self.problem, self.weights.size
        push = constant[1] - self._skew * need
        if problem.can_flip:
            push -= constant[2]
        right = np.empty(self._matrix.shape[0])
        np.subtract(push @ problem.rows, self._residual, out=right[:d])
        if self.cone:
            shift = self.cone.shift(target, correction)
            right[: problem.n_features] += shift[:-1]
            right[-1] = shift[-1] - self._price_residual
            if problem.can_flip:
                right[-1] += problem.flip * float((constant[2] - self._share * need).sum())
        self._step, _ = dpotrs(self._factor, right, lower=0)
        reach = self._set_rows(problem.rows @ self._step[:d], constant, need)
        if self.cone:
            step = self._step
            if d > problem.n_features:
                step = np.append(step[: problem.n_features], step[-1])
            reach = min(reach, self.cone.set_step(step))
        return reach

    def _set_rows(self, margins: FloatArray, constant: FloatArray, need: FloatArray | float) -> float:
        """Steps of the rows' slacks and duals from the step of the margins."""
        values = need / self._total
        values -= self._skew * margins
        self._step_slack = np.empty_like(self.slack)
        if self.problem.can_flip:
            flip = self.problem.flip * float(self._step[-1])
            values -= flip * self._share
            np.subtract(values, margins, out=self._step_slack[2])
            self._step_slack[2] += flip
        self._step_slack[0] = values
        np.add(values, margins, out=self._step_slack[1])
        self._step_dual = constant - self._ratio * self._step_slack
        return min(float((self._step_slack / self.slack).min()), float((self._step_dual / self.dual).min()), 0.0)


def start_interior(problem: Statement, weights: FloatArray, floor: float) -> InteriorPoint:
    """Start a run narrowly around ``weights``, or wider where these turn out to be far from the optimum."""
    width = _NARROW
    run = InteriorPoint(problem, weights, floor, width)
    while run.imbalance > _BALANCED and width < _WIDE:
        width *= 10.0
        wider = InteriorPoint(problem, weights, floor, width)
        if wider.imbalance > 0.9 * run.imbalance:
            break
        run = wider
    return run


def centred_rows(
    problem: Statement, margins: FloatArray, multiplier: float, target: float
) -> tuple[FloatArray, FloatArray]:
    """Slacks and duals (k, n) of the rows' k pieces, near complementarity ``target``, the duals summing to 1."""
    slack = np.empty((3 if problem.can_flip else 2, margins.size))
    slack[0] = 0.0
    np.subtract(margins, 1.0, out=slack[1])
    if problem.can_flip:
        np.subtract(problem.flip * multiplier - 1.0, margins, out=slack[2])
    # minus the pieces so far; the row's variable sits above the highest piece by so much that the products are even
    slack -= slack.min(axis=0) - 1.5 * target
    dual = target / slack
    dual /= dual.sum(axis=0)
    return slack, dual


def weighted_gram(rows: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Write ``sum_i weights_i row_i row_i'`` to ``out`` (D, D): one pass over the rows (n, D), no second copy."""
    block = max(_BLOCK_VALUES // rows.shape[1], 64)
    if rows.shape[0] <= block:
        out[:] = (rows * weights[:, None]).T @ rows
        return
    for start in range(0, rows.shape[0], block):
        part = rows[start : start + block]
        out += (part * weights[start : start + block, None]).T @ part
