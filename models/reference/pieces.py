r"""The sets Omega_s of a piecewise linear loss on a bounded support: DRFL Corollaries B.2 to B.4 (and so 6.3 and 6.4).

A piece of row i is ``coefficient_i (<w, x_i> + b) + height_i`` and costs the adversary ``cost`` (a label flip).
Moved by (d, e) it gains ``coefficient_i (<w, d> - e)``, the target's part e for a regression only. By duality

    sup { <a, d> + a' e - lam (||d|| + kappa |e|) : C d + c e <= room_i }
        = min { <phi, room_i> : phi >= 0, ||a - C' phi||_* <= lam, |a' - c' phi| <= kappa lam },

with ``room_i = limits - C x_i - c y_i``. The paper writes the bounds on both parts as one dual norm of eq. 12.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.norms import DUAL_NORM
from models.geometry.supports import PolytopeSupport
from models.problem import SiteProblem
from models.reference.solve import CVXPY_NORM, price_variable


@dataclass(frozen=True)
class Walls:
    """Support ``matrix x + column y <= limits``: (r, P), (r,), (r,); ``column`` is 0 for a classification."""

    matrix: FloatArray
    column: FloatArray
    limits: FloatArray

    def clearance(self, features: FloatArray, targets: FloatArray) -> FloatArray:
        """What is left to each wall, (N, r); a row that sticks out by rounding has none left."""
        used = features @ self.matrix.T + np.outer(targets, self.column)
        return np.maximum(self.limits - used, 0.0)


def walls(problem: SiteProblem) -> Walls:
    """Walls of a site's polytope; raises ``ProblemError`` where its support is none."""
    support = problem.spec.support
    if not isinstance(support, PolytopeSupport):
        raise ProblemError("this is for a polytope support")
    column = support.target_column
    return Walls(support.matrix, np.zeros(support.limits.shape) if column is None else column, support.limits)


@dataclass(frozen=True)
class Piece:
    """``coefficient`` (N,), ``height`` (N,) and what choosing the piece costs besides moving."""

    coefficient: FloatArray
    height: FloatArray
    cost: float


def pieces(problem: SiteProblem) -> tuple[tuple[Piece, ...], float | None]:
    """Pieces that rise or fall, and the largest constant one (None where there is none).

    :class:`ProblemError` for a loss that is not piecewise linear.
    """
    spec, labels = problem.spec, problem.labels
    lines = spec.loss.lines
    if lines is None:
        raise ProblemError(f"the {spec.loss.name} loss has no pieces")
    found: list[Piece] = []
    constant: float | None = None
    for line in lines:
        height = np.full(labels.shape, line.height)
        if line.slope == 0:
            constant = line.height if constant is None else max(constant, line.height)
        elif spec.loss.task == "regression":
            found.append(Piece(np.full(labels.shape, line.slope), height - line.slope * labels, 0.0))
        else:
            found.append(Piece(line.slope * labels, height, 0.0))
            if np.isfinite(spec.label_flip_cost):
                found.append(Piece(-line.slope * labels, height, spec.label_flip_cost))
    return tuple(found), constant


@dataclass(frozen=True)
class PieceModel:
    """A program's parts for one site; lists run over the pieces.

    ``risk`` is to be minimised under ``constraints``. The duals of ``above`` (N,) are the masses of the pieces, those
    of ``pulls`` (N, P) and ``target_pulls`` (N,) their moves times their masses, all over N.
    """

    risk: cp.Expression
    constraints: list[cp.Constraint]
    multiplier: cp.Expression
    multipliers: list[cp.Variable]
    above: list[cp.Constraint]
    pulls: list[cp.Constraint]
    target_pulls: list[cp.Constraint]


def piece_model(
    plane: cp.Expression, intercept: cp.Expression | float, problem: SiteProblem, place: Walls,
    unit: cp.Expression | float = 1.0,
) -> PieceModel:
    """Worst-case risk at a plane (P,), an expression or a parameter, within the walls of a bounded support.

    With a ``unit`` u: u times the risk at the plane and intercept that u times gives those here.
    """
    spec, x = problem.spec, problem.features
    count, n_features = x.shape
    regression = spec.loss.task == "regression"
    clearance = place.clearance(x, problem.labels if regression else np.zeros(count))
    some, constant = pieces(problem)
    multiplier, alpha, scores = price_variable(spec), cp.Variable(count), x @ plane + intercept
    norm = CVXPY_NORM[DUAL_NORM[spec.transport_norm]]
    model = PieceModel(spec.radius * multiplier + problem.counts @ alpha / count, [], multiplier, [], [], [], [])
    if constant is not None:
        model.constraints.append(alpha >= unit * constant)
    for piece in some:
        phi, pull = cp.Variable(clearance.shape, nonneg=True), cp.Variable(x.shape)
        height = unit * piece.height - piece.cost * multiplier if piece.cost else unit * piece.height
        gain = cp.sum(cp.multiply(phi, clearance), axis=1)
        model.above.append(cp.multiply(piece.coefficient, scores) + height + gain <= alpha)
        steep = piece.coefficient[:, None] @ cp.reshape(plane, (1, n_features), order="C")
        model.pulls.append(pull == steep - phi @ place.matrix)
        model.constraints.append(cp.norm(pull, norm, axis=1) <= multiplier)
        if regression:
            target_pull = cp.Variable(count)
            model.target_pulls.append(target_pull == -unit * piece.coefficient - phi @ place.column)
            if np.isfinite(spec.label_flip_cost):
                model.constraints.append(cp.abs(target_pull) <= spec.label_flip_cost * multiplier)
        model.multipliers.append(phi)
    model.constraints.extend([*model.above, *model.pulls, *model.target_pulls])
    return model
