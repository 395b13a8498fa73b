r"""A distribution that a solver found, brought into the polytope and the transport budget: a cut that holds.

Row i is on piece k with mass ``beta_ik / N`` and moved by ``q_ik / beta_ik`` (the target by ``e_ik / beta_ik``). It is
in the Wasserstein ball where, with ``room_i`` what is left to each wall,

    sum_k beta_ik <= 1,   C q_ik + c e_ik <= beta_ik room_i,
    sum_ik { ||q_ik|| + kappa |e_ik| + cost_k beta_ik } <= N radius.

Masses are clipped, moves are drawn towards a point strictly inside by as little as it takes, and what costs anything is
shrunk to the budget. Then for every plane (u, c), every loss being at or above 0,

    r(u, c) >= (1/N) sum_ik { coefficient_ik (beta_ik (<u, x_i> + c) + <u, q_ik> - e_ik) + beta_ik height_ik }.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.norms import vector_norm
from models.geometry.polytopes import inner_point
from models.geometry.supports import PolytopeSupport
from models.problem import SiteProblem
from models.reference.pieces import Piece, Walls

ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Share of the sum of all sizes by which the rounding of a sum may be off."""

_NOTHING = 1e-12
"""Mass of a piece below which where it moves to cannot matter."""


@dataclass(frozen=True)
class Atoms:
    """One piece's masses (N,), and the moves times the masses: of features (N, P) and of targets (N,)."""

    mass: FloatArray
    move: FloatArray
    target_move: FloatArray


class PolytopeBall:
    """The Wasserstein ball of one site on a polytope."""

    def __init__(self, problem: SiteProblem, walls: Walls, pieces: Sequence[Piece]) -> None:
        self.problem, self.walls, self.pieces = problem, walls, pieces
        self.regression = problem.spec.loss.task == "regression"
        targets = problem.labels if self.regression else np.zeros(problem.labels.shape)
        self.clearance = walls.clearance(problem.features, targets)
        self.inward, self.target_inward, self.inner_clearance = self._inward(targets)

    def cut(self, found: Sequence[Atoms], weights: FloatArray, intercept: float) -> tuple[float, FloatArray, float]:
        """Value at a plane, lowered by its rounding, slope (P,) and intercept slope of the minorant of the atoms."""
        atoms = self.brought_inside(found)
        x, count = self.problem.features, self.problem.labels.shape[0]
        slope, intercept_slope, constant, size = np.zeros(x.shape[1]), 0.0, 0.0, 0.0
        scores = np.abs(x) @ np.abs(weights) + abs(intercept)
        for piece, part in zip(self.pieces, atoms, strict=True):
            slope += (piece.coefficient * part.mass) @ x + piece.coefficient @ part.move
            intercept_slope += float(piece.coefficient @ part.mass)
            constant += float(piece.height @ part.mass - piece.coefficient @ part.target_move)
            moved = scores * part.mass + np.abs(part.move) @ np.abs(weights) + np.abs(part.target_move)
            size += float(np.abs(piece.coefficient) @ moved + np.abs(piece.height) @ part.mass)
        value = (float(slope @ weights) + intercept_slope * intercept + constant - ROUNDING * size) / count
        return value, slope / count, intercept_slope / count

    def brought_inside(self, found: Sequence[Atoms]) -> list[Atoms]:
        """Atoms of a distribution of the ball."""
        masses = [np.clip(part.mass, 0.0, None) for part in found]
        most = self.problem.counts
        total = np.maximum(np.sum(masses, axis=0), most)
        atoms = [self._within(part, mass * (most / total)) for part, mass in zip(found, masses, strict=True)]
        spec = self.problem.spec
        cost = 0.0
        for piece, part in zip(self.pieces, atoms, strict=True):
            cost += float(vector_norm(part.move, spec.transport_norm).sum()) + piece.cost * float(part.mass.sum())
            if math.isfinite(spec.label_flip_cost):
                cost += spec.label_flip_cost * float(np.abs(part.target_move).sum())
        budget = spec.radius * self.problem.labels.shape[0]
        share = min(1.0, budget / cost) if cost > 0 else 1.0
        return [
            Atoms(part.mass * (share if piece.cost else 1.0), share * part.move, share * part.target_move)
            for piece, part in zip(self.pieces, atoms, strict=True)
        ]

    def _within(self, part: Atoms, mass: FloatArray) -> Atoms:
        """Atoms with their moves drawn inwards until they are inside the polytope."""
        alive = mass > _NOTHING
        move = np.where(alive[:, None], part.move, 0.0)
        target_move = np.where(alive, part.target_move, 0.0)
        if not math.isfinite(self.problem.spec.label_flip_cost):
            target_move = np.zeros_like(target_move)
        beyond = move @ self.walls.matrix.T + np.outer(target_move, self.walls.column) - mass[:, None] * self.clearance
        # The share t of the way inwards at which (1 - t) beyond = t mass inner_room.
        gap = np.maximum(beyond, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(gap > 0, gap / (gap + mass[:, None] * self.inner_clearance), 0.0).max(axis=1)
        still = share >= 1.0
        move = (1.0 - share)[:, None] * move + (share * mass)[:, None] * self.inward
        target_move = (1.0 - share) * target_move + share * mass * self.target_inward
        return Atoms(mass, np.where(still[:, None], 0.0, move), np.where(still, 0.0, target_move))

    def _inward(self, targets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Moves (N, P) and (N,) to points strictly inside, and how much room (N, r) they leave there."""
        support, x = self.problem.spec.support, self.problem.features
        if not isinstance(support, PolytopeSupport):
            raise ProblemError("this is for a polytope support")
        if self.regression and not math.isfinite(self.problem.spec.label_flip_cost):
            points = np.stack([self._slice_point(row, target) for row, target in zip(x, targets, strict=True)])
            ends = targets
        else:
            points = np.broadcast_to(support.inner[: x.shape[1]], x.shape)
            ends = np.full(targets.shape, support.inner[-1]) if self.regression else targets
        return points - x, ends - targets, self.walls.clearance(points, ends)

    def _slice_point(self, row: FloatArray, target: float) -> FloatArray:
        """Point inside among those with the same target; the row itself where there is none."""
        try:
            return inner_point(self.walls.matrix, self.walls.limits - target * self.walls.column)[0]
        except ProblemError:
            return row
