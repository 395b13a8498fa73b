r"""Worst-case risk of one site on a polytope at fixed weights, by CVXPY and Clarabel, with bounds that hold.

The program is that of ``pieces`` with the weights as parameters, over the size of the losses at them: compiled once a
site, solved at every point. Neither what the solver says of its gap nor its residuals are believed; weak duality is,
at two points that are feasible by arithmetic:

- its multipliers, clipped at 0, brought within the bound on the pull on the target, with the price raised to the
  largest norm that they leave, are feasible: their value is an upper bound of the risk;
- its duals are a distribution, which ``polytope_atoms`` brings back into the ball: the loss that it expects is a lower
  bound, at every weights, hence the cut.

Both are moved apart by what rounding may have done to the sums. What the two differ by is the
whole error of the answer: a solver that stops early makes it larger, never false.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import replace
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from models.basics import FloatArray
from models.features.common_units import CommonUnits
from models.geometry.norms import dual_norm, dual_norms
from models.geometry.polytopes import combination
from models.geometry.supports import PolytopeSupport
from models.problem import SiteProblem
from models.reference.pieces import Piece, piece_model, pieces, walls
from models.reference.polytope_atoms import ROUNDING, Atoms, PolytopeBall
from models.reference.solve import solve_tightly

_HIDDEN = 1e-18
"""Share of the mass, or of the target's unit, that the radius moves at most, which the rounding of the bounds hides."""


_RESIDUE = 1e-14
"""Share of the polytope's depth below which a value is what a subtraction left: no unit for a program."""


class PolytopeBounds(NamedTuple):
    """``lower <= r(w, b) <= upper``, and ``lower`` with ``slope`` (P,) and ``intercept_slope`` a cut of r at (w, b)."""

    upper: float
    multiplier: float
    lower: float
    slope: FloatArray
    intercept_slope: float


def solve_polytope(weights: FloatArray, intercept: float, problem: SiteProblem) -> PolytopeBounds | None:
    """Worst-case risk at a plane ``weights`` (P,) with its cut, a plane; None where the solver finds nothing.

    The program is that of the site in units in which a typical feature, and its largest target, is 1.
    """
    units, program = _program(problem)
    try:
        found = program.evaluated(weights * (units.feature / units.target), intercept / units.target)
    except ArithmeticError:
        return None
    rate = units.risk / units.target
    return PolytopeBounds(
        units.risk * found.upper, units.risk / units.feature * found.multiplier, units.risk * found.lower,
        rate * units.feature * found.slope, rate * found.intercept_slope,
    )


class _Program:
    """The compiled program of one site."""

    def __init__(self, problem: SiteProblem) -> None:
        self.problem = problem
        self.plane, self.intercept = cp.Parameter(problem.features.shape[1]), cp.Parameter()
        self.unit, self.size = cp.Parameter(nonneg=True), 1.0
        self.walls = walls(problem)
        self.model = piece_model(self.plane, self.intercept, self.problem, self.walls, self.unit)
        # Sums over the rows, not means: masses and moves are then of order one.
        count = problem.labels.shape[0]
        self.program = cp.Problem(cp.Minimize(count * self.model.risk), self.model.constraints)
        self.pieces, self.constant = pieces(self.problem)
        self.regression = problem.spec.loss.task == "regression"
        self.phis = self.model.multipliers
        self.of_target: tuple[FloatArray, FloatArray] | None = None
        if self.regression and math.isfinite(problem.spec.label_flip_cost):
            whole, target = np.column_stack([self.walls.matrix, self.walls.column]), np.eye(self.plane.size + 1)[-1]
            self.of_target = combination(whole, -target), combination(whole, target)
        self.ball = PolytopeBall(self.problem, self.walls, self.pieces)

    def evaluated(self, weights: FloatArray, intercept: float) -> PolytopeBounds:
        """Answer at a plane."""
        spec, scores = self.problem.spec, self.problem.features @ weights + intercept
        own = np.abs(self.problem.labels).max() if self.regression else 1.0
        size = max(float(own), float(np.abs(scores).max()), dual_norm(weights, spec.transport_norm)) or 1.0
        self.plane.value, self.intercept.value = weights / size, np.asarray(intercept / size)
        self.unit.value, self.size = np.asarray(1.0 / size), size
        solve_tightly(self.program)
        upper, multiplier = self._upper(weights, intercept)
        lower, slope, intercept_slope = self.ball.cut(self._atoms(), weights, intercept)
        return PolytopeBounds(upper, multiplier, lower, slope, intercept_slope)

    def _upper(self, weights: FloatArray, intercept: float) -> tuple[float, float]:
        """Value of the multipliers once they are feasible and the price is raised to what they need."""
        spec, labels, norm = self.problem.spec, self.problem.labels, self.problem.spec.transport_norm
        multiplier = self.size * max(float(self.model.multiplier.value), 0.0)
        found = zip(self.phis, self.pieces, strict=True)
        phis = [self._feasible(self.size * phi.value, piece, multiplier) for phi, piece in found]
        for piece, phi in zip(self.pieces, phis, strict=True):
            steep = np.outer(piece.coefficient, weights)
            pull, sizes = steep - phi @ self.walls.matrix, np.abs(steep) + phi @ np.abs(self.walls.matrix)
            multiplier = max(multiplier, float((dual_norms(pull, norm) + ROUNDING * dual_norms(sizes, norm)).max()))
        scores = self.problem.features @ weights + intercept
        heights = np.full(labels.shape, -np.inf if self.constant is None else self.constant)
        size = spec.radius * multiplier
        for piece, phi in zip(self.pieces, phis, strict=True):
            gain = np.einsum("ir,ir->i", phi, self.ball.clearance)
            cost = piece.cost * multiplier if piece.cost else 0.0
            rise = piece.coefficient * scores
            heights = np.maximum(heights, rise + piece.height + gain - cost)
            size += float(self.problem.weigh(np.abs(rise) + np.abs(piece.height) + gain + cost).mean())
        return spec.radius * multiplier + float(self.problem.weigh(heights).mean()) + ROUNDING * size, multiplier

    def _feasible(self, value: FloatArray, piece: Piece, multiplier: float) -> FloatArray:
        """Multipliers at or above 0 whose pull on the target is within ``label_flip_cost * multiplier``.

        What is beyond it goes over to walls that together pull on the target alone: dividing it by a small cost to
        raise the price would cost far more.
        """
        phi = np.maximum(value, 0.0)
        if self.of_target is None:
            return phi
        pull = piece.coefficient + phi @ self.walls.column
        beyond = np.maximum(np.abs(pull) - self.problem.spec.label_flip_cost * multiplier, 0.0)
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


_PROGRAMS: dict[int, tuple[weakref.ref[SiteProblem], CommonUnits, _Program]] = {}


def _cleared(problem: SiteProblem) -> SiteProblem:
    """The site with residues of rounding at 0; the rounding that the bounds allow for is far above them."""
    support, spec = problem.spec.support, problem.spec
    assert isinstance(support, PolytopeSupport)
    least, labels = _RESIDUE * support.depth, problem.labels
    if spec.loss.task == "regression":
        labels = np.where(np.abs(labels) < least, 0.0, labels)
    return replace(problem, features=np.where(np.abs(problem.features) < least, 0.0, problem.features), labels=labels)


def _program(problem: SiteProblem) -> tuple[CommonUnits, _Program]:
    """Units and compiled program of a site, kept as long as the site problem itself lives."""
    key = id(problem)
    kept = _PROGRAMS.get(key)
    if kept is not None and kept[0]() is problem:
        return kept[1], kept[2]
    cleared = _cleared(problem)
    units = CommonUnits.of({"": cleared})
    # A copy: the program must not keep the problem itself alive, by which it is found.
    stated = replace(units.stated({"": cleared})[""])
    if stated.spec.radius < _HIDDEN * stated.spec.label_flip_cost:
        stated = replace(stated, spec=replace(stated.spec, label_flip_cost=math.inf))
    made = _Program(stated)
    _PROGRAMS[key] = (weakref.ref(problem, lambda _: _PROGRAMS.pop(key, None)), units, made)
    return units, made
