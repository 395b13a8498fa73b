r"""Worst-case risk of one site on a polytope at fixed weights, by CVXPY and Clarabel, with bounds that hold.

The program is that of ``pieces`` with the weights as parameters: compiled once a site, solved at every point. Its
multipliers (lam, phi), made feasible, give the value, an upper bound whatever the solver's tolerance. Its duals are a
distribution, which ``polytope_atoms`` brings back into the ball: the cut, and a lower bound of the value. What the two
differ by is the ``slack`` of the answer.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import replace

import cvxpy as cp
import numpy as np

from models.ambiguity import dual_norms
from models.basics import FloatArray
from models.polytopes import combination
from models.problem import SiteProblem
from models.reference.pieces import Piece, piece_model, pieces, walls
from models.reference.polytope_atoms import Atoms, PolytopeBall
from models.reference.solve import solve_tightly
from models.saddle import Judged


def judge_polytope(weights: FloatArray, intercept: float, problem: SiteProblem) -> Judged:
    """Worst-case risk at a plane ``weights`` (P,) with its cut, a plane; raises ``ArithmeticError`` on failure."""
    return _program(problem).judged(weights, intercept)


class _Program:
    """The compiled program of one site."""

    def __init__(self, problem: SiteProblem) -> None:
        # A copy: the program must not keep the problem itself alive, by which it is found.
        self.problem = replace(problem)
        self.plane, self.intercept = cp.Parameter(problem.features.shape[1]), cp.Parameter()
        self.model = piece_model(self.plane, self.intercept, self.problem)
        # Sums over the rows, not means: masses and moves are then of order one.
        count = problem.labels.shape[0]
        self.program = cp.Problem(cp.Minimize(count * self.model.risk), self.model.constraints)
        self.pieces, self.constant = pieces(self.problem)
        self.walls = walls(self.problem)
        self.regression = problem.spec.loss.task == "regression"
        self.phis = self.model.multipliers
        self.of_target: tuple[FloatArray, FloatArray] | None = None
        if self.regression and math.isfinite(problem.spec.label_flip_cost):
            whole, target = np.column_stack([self.walls.matrix, self.walls.column]), np.eye(self.plane.size + 1)[-1]
            self.of_target = combination(whole, -target), combination(whole, target)
        self.ball = PolytopeBall(self.problem, self.walls, self.pieces)

    def judged(self, weights: FloatArray, intercept: float) -> Judged:
        """Answer at a plane."""
        self.plane.value, self.intercept.value = weights, np.asarray(intercept)
        solve_tightly(self.program)
        upper, price = self._upper(weights, intercept)
        lower, slope, flat = self.ball.cut(self._atoms(), weights, intercept)
        return Judged(upper, price, slope, flat, 0.0, slack=max(upper - lower, 0.0))

    def _upper(self, weights: FloatArray, intercept: float) -> tuple[float, float]:
        """Value of the multipliers once they are feasible and the price is raised to what they need."""
        spec, labels = self.problem.spec, self.problem.labels
        price = max(float(self.model.price.value), 0.0)
        phis = [self._feasible(phi.value, piece, price) for phi, piece in zip(self.phis, self.pieces, strict=True)]
        for piece, phi in zip(self.pieces, phis, strict=True):
            pull = np.outer(piece.coefficient, weights) - phi @ self.walls.matrix
            price = max(price, float(dual_norms(pull, spec.transport_norm).max()))
        scores = self.problem.features @ weights + intercept
        heights = np.full(labels.shape, -np.inf if self.constant is None else self.constant)
        for piece, phi in zip(self.pieces, phis, strict=True):
            gain = np.einsum("ir,ir->i", phi, self.ball.room)
            cost = piece.cost * price if piece.cost else 0.0
            heights = np.maximum(heights, piece.coefficient * scores + piece.height + gain - cost)
        return spec.radius * price + float(heights.mean()), price

    def _feasible(self, value: FloatArray, piece: Piece, price: float) -> FloatArray:
        """Multipliers at or above 0 whose pull on the target is within ``label_flip_cost * price``.

        What is beyond it goes over to walls that together pull on the target alone: dividing it by a small cost to
        raise the price would cost far more.
        """
        phi = np.maximum(value, 0.0)
        if self.of_target is None:
            return phi
        pull = piece.coefficient + phi @ self.walls.column
        beyond = np.maximum(np.abs(pull) - self.problem.spec.label_flip_cost * price, 0.0)
        down, up = self.of_target
        return np.asarray(phi + np.outer(np.where(pull > 0, beyond, 0.0), down) + np.outer(beyond * (pull < 0), up))

    def _atoms(self) -> list[Atoms]:
        """Masses and moves of each piece as the solver left them."""
        found = []
        targets = self.model.target_pulls or [None] * len(self.pieces)
        for above, pull, target in zip(self.model.above, self.model.pulls, targets, strict=True):
            mass, move = np.asarray(above.dual_value, dtype=np.float64), -np.asarray(pull.dual_value, dtype=np.float64)
            target_move = np.zeros_like(mass) if target is None else -np.asarray(target.dual_value, dtype=np.float64)
            found.append(Atoms(mass, move, target_move))
        return found


_PROGRAMS: dict[int, tuple[weakref.ref[SiteProblem], _Program]] = {}


def _program(problem: SiteProblem) -> _Program:
    """The compiled program of a site, kept as long as the site problem itself lives."""
    key = id(problem)
    kept = _PROGRAMS.get(key)
    if kept is not None and kept[0]() is problem:
        return kept[1]
    made = _Program(problem)
    _PROGRAMS[key] = (weakref.ref(problem, lambda _: _PROGRAMS.pop(key, None)), made)
    return made
