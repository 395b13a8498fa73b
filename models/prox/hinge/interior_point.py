r"""Primal-dual interior point for the client step: one site, whose multiplier is the bound of the norm.

Every row's own variable is eliminated (``solvers.hinge_rows``); what is left is one positive definite system of D + 1
unknowns.

Prefer it from a cold start and where kinks tie (duplicate rows, weights that vanish); it needs no guess. Near the end
of a run the pattern of active pieces shows, and `active_set` finishes in one solve what would take several steps.
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.prox.hinge.statement import Iterate, Statement
from models.solvers.hinge_interior_point import HingeInteriorPoint
from models.solvers.hinge_rows import HingeRows
from models.solvers.norm_cones import CONES, NormCone

_SAFE_CENTRING = 0.3  # of steps that only follow the path
_SETTLING = 1e-3  # mean complementarity, in units of the hinge, at which slacks are far above rounding and near the end
_TOO_MANY_FLIPS = 4.0  # over what the radius pays for, at the start
_NARROW = 0.01  # complementarity to start from, in units of the hinge
_WIDE = 1e8  # beyond it a wider start is a number without a meaning
_BALANCED = 5.0  # gap over complementarity up to which residuals do not rule


class InteriorPoint(HingeInteriorPoint):
    """One run; `advance` makes a step, `iterate` reads off where it stands.

    Parameters
    ----------
    problem : ``price`` 0 with ``flip`` infinite is the plain support vector machine, which has no multiplier.
    weights : (D,), the start. Slacks and duals of the rows start centred for it.
    floor : the multiplier starts at or above it; best its optimum for these weights.
    target : complementarity to start from: the width, in units of the hinge, in which pieces count as near.
    """

    def __init__(self, problem: Statement, weights: FloatArray, floor: float, target: float) -> None:
        self.problem = problem
        margins = problem.rows @ weights
        self.rows = HingeRows(problem.rows, problem.flip)
        self.rows.centre(margins, floor, target)
        self._astray = 0
        self._settled = False
        cone: NormCone | None = None
        if problem.is_robust:
            least = self._raised(margins, floor, target)
            price = max(problem.price - float(self.rows.flipped), 0.1 * problem.price, 1e-3 * target)
            cone = CONES[problem.norm](weights[: problem.n_features], least, price, target)
            if problem.can_flip:
                self.rows.slack[2] += problem.flip * (cone.multiplier - least)
        size = weights.size + int(problem.is_robust)
        super().__init__([(self.rows, -1)], cone, weights, problem.n_features, size)

    def _raised(self, margins: FloatArray, multiplier: float, target: float) -> float:
        """Raise the multiplier until the flips that the start supposes cost no more than a few times what they may."""
        problem, rows = self.problem, self.rows
        if not problem.price > 0.0 or rows.flipped <= _TOO_MANY_FLIPS * problem.price:
            return multiplier
        # a row that flips by a little at the start has dual weight target / (flip * raise) after the raise
        step = max(target * float(np.count_nonzero(rows.dual[2] > 0.1)) / problem.price, target / problem.flip)
        while rows.flipped > _TOO_MANY_FLIPS * problem.price:
            multiplier += step
            step *= 2.0
            rows.centre(margins, multiplier, target)
        return multiplier

    def _measure(self) -> None:
        """Residuals, complementarity and duality gap at the iterate."""
        problem, d = self.problem, self.weights.size
        self._away = self.weights - problem.anchor
        residual = np.full(self._matrix.shape[0], problem.price)
        np.multiply(problem.stiffness, self._away, out=residual[:d])
        residual[:d] += problem.linear
        self._weigh(residual)
        self.gap = abs(float(residual[-1])) * self.bound if self.cone else 0.0
        self.gap += self._complementarity + float(residual[:d] @ residual[:d]) / (2.0 * problem.stiffness)

    @property
    def imbalance(self) -> float:
        """Duality gap over the complementarity: large where the start is too near the boundary for its residuals."""
        return self.gap / self._complementarity

    def objective(self) -> float:
        """Primal objective; the iterate is primal feasible, and its first slack is the row's own variable."""
        problem = self.problem
        total = problem.constant + float(self.rows.slack[0].sum()) + problem.price * self.bound
        return total + float(problem.linear @ self.weights + 0.5 * problem.stiffness * (self._away @ self._away))

    def iterate(self) -> Iterate:
        """Where the run stands."""
        pull = self.cone.pull()[1:] if self.cone else np.zeros(self.problem.n_features)
        flip = self.rows.dual[2] if self.problem.can_flip else np.zeros(0)
        return Iterate(
            weights=self.weights.copy(),
            multiplier=self.bound if self.cone else np.inf,
            keep=self.rows.dual[1].copy(),
            flip=flip.copy(),
            norm_dual=pull.copy(),
            gap=self.gap,
            objective=self.objective(),
        )

    def _safeguard(self, predicted: float) -> tuple[float, float]:
        """See `HingeInteriorPoint`.

        The second-order term belongs to a whole step; after a short predictor it may lead astray, even in circles.
        Where it did so more than once, plain steps of the path-following kind take over.
        """
        correction = (1.0, predicted * predicted, 0.0)[min(self._astray, 2)]
        return correction, _SAFE_CENTRING if self._astray > 1 else 0.0

    def _assemble(self) -> None:
        d, size = self.weights.size, self._matrix.shape[0]
        self._matrix.ravel()[: d * size : size + 1] += self.problem.stiffness
        super()._assemble()

    def _move(self, length: float) -> None:
        before = self._complementarity
        super()._move(length)
        if not self._settled and self._complementarity < _SETTLING * self._degree:
            self._settled = True
            self._resettle()
        self._astray += int(self._complementarity > before)

    def _resettle(self) -> None:
        """Recompute the slacks from the point, once, while they are still far above rounding.

        They move by steps, because one that is recomputed near the end rounds to nothing; but a start of large numbers
        leaves its rounding in them.
        """
        problem, features = self.problem, self.weights[: self.problem.n_features]
        margins = problem.rows @ self.weights
        slack = self.rows.slack.copy()
        np.add(slack[0], margins - 1.0, out=slack[1])
        if problem.can_flip:
            np.subtract(slack[0] + (problem.flip * self.bound - 1.0), margins, out=slack[2])
        if float(slack.min()) > 0.0 and (self.cone is None or self.cone.resettle(features, self.bound)):
            self.rows.slack = slack
            self._measure()


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
