r"""Primal-dual interior point for sums of hinge losses under one norm constraint: what its problems share.

    min_{w, t >= ||w||_*}  sum of the losses of the rows (``hinge_rows``), in w and in the multipliers that price flips
                           + whatever a problem adds in the weights and the multipliers

The unknowns of a Newton step are the weights first and the bound t last, where there is a norm constraint; a problem
may have more of its own between. Steps are Mehrotra's predictor and corrector (1992).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from models.basics import FloatArray
from models.solvers.factored import solve_by_cholesky
from models.solvers.hinge_rows import HingeRows, Place
from models.solvers.norm_cones import NormCone

_STEP_SHARE = 0.995  # how far towards the boundary a step may go
_SHORTEST_STEP = 1e-10  # below it no progress is left at working precision


class HingeInteriorPoint(ABC):
    """An iterate and its steps. A problem gives its rows with the place of their multiplier among the unknowns.

    weights : (D,). bound : t, 0 without a norm constraint. size : number of unknowns.
    """

    def __init__(
        self, parts: list[tuple[HingeRows, Place]], cone: NormCone | None, weights: FloatArray, n_features: int,
        size: int,
    ) -> None:
        self.parts, self.cone, self.weights, self._p = parts, cone, weights.copy(), n_features
        self.bound = cone.multiplier if cone else 0.0
        self._matrix = np.zeros((size, size))
        self._degree = sum(rows.slack.size for rows, _ in parts) + (cone.degree if cone else 0)
        self._measure()

    @abstractmethod
    def _safeguard(self, predicted: float) -> tuple[float, float]:
        """Share of the second-order term and least centring that a predictor of this length is to be trusted with."""

    @abstractmethod
    def _measure(self) -> None:
        """Residuals and complementarity at the iterate, by `_weigh` from what the problem adds to the equations."""

    def advance(self) -> bool:
        """Make one predictor-corrector step; False when working precision allows no further one."""
        self._matrix[:] = 0.0
        try:
            self._assemble()
        except ZeroDivisionError:  # the cone has collapsed to its tip
            return False
        factored = solve_by_cholesky(self._matrix)
        before = self._complementarity
        if factored is None or not before > 0.0:
            return False
        self._solver = factored
        reach = self._solve(0.0, 0.0)
        length = min(-1.0 / reach, 1.0) if reach < 0.0 else 1.0
        # The predictor takes complementarity down in proportion, but for the product of the steps.
        left = max((1.0 - length) * before + length * length * self._curved_change(), 0.0)
        correction, centring = self._safeguard(length)
        target = max((left / before) ** 3, centring) * (before / self._degree)
        reach = self._solve(target, correction)
        length = min(-_STEP_SHARE / reach, 1.0) if reach < 0.0 else 1.0
        if not (length > _SHORTEST_STEP and math.isfinite(float(self._step.sum()))):
            return False
        self._move(length)
        return True

    def _weigh(self, residual: FloatArray) -> None:
        """Take what rows and cone push off the residual of the rest; their complementarity."""
        d, self._residual, self._complementarity = self.weights.size, residual, 0.0
        for rows, place in self.parts:
            self._residual[:d] -= rows.pull()
            if rows.can_flip:
                self._residual[place] -= rows.flipped
            self._complementarity += rows.complementarity()
        if self.cone:
            pull = self.cone.pull()
            self._residual[: self._p] -= pull[1:]
            self._residual[-1] -= pull[0]
            self._complementarity += self.cone.complementarity()

    def _assemble(self) -> None:
        """Add all parts to the normal matrix, lower triangle."""
        for rows, place in self.parts:
            rows.add_curvature(self._matrix, place)
        if self.cone:
            self.cone.add_curvature(self._matrix)

    def _solve(self, target: float, correction: float) -> float:
        """Solve for the step to complementarity ``target``; return its most negative relative change."""
        self._step = self._solver(self._right_hand_side(target, correction))
        return self._set_step()

    def _right_hand_side(self, target: float, correction: float) -> FloatArray:
        right: FloatArray = -self._residual
        for rows, place in self.parts:
            rows.add_right_hand_side(right, place, target, correction)
        if self.cone:
            shift = self.cone.shift(target, correction)
            right[: self._p] += shift[1:]
            right[-1] += shift[0]
        return right

    def _set_step(self) -> float:
        step, d = self._step, self.weights.size
        reach = min(rows.set_step(step[:d], step[place]) for rows, place in self.parts)
        if self.cone:
            reach = min(reach, self.cone.set_step(np.concatenate((step[-1:], step[: self._p]))))
        return reach

    def _curved_change(self) -> float:
        own = sum(rows.curved_change() for rows, _ in self.parts)
        return own + (self.cone.curved_change() if self.cone else 0.0)

    def _move(self, length: float) -> None:
        self.weights += length * self._step[: self.weights.size]
        for rows, _ in self.parts:
            rows.move(length)
        if self.cone:
            self.bound += length * float(self._step[-1])
            self.cone.move(length)
        self._measure()
