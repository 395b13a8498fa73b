r"""The worst-case program of FDR eq. (7): as printed, with its sign mended, and complete.

Kept so that a test shows the three side by side (MATH section 2); nothing else uses them. Per sample the atoms have
mass beta+ (label kept), beta- (flipped) and, in the complete program only, beta0 (left alone with loss zero); q+ and q-
are beta times the move. An atom sits at ``x - q / beta`` as in the paper's eq. (6), so moving by q changes the kept
loss by ``+ y <w, q+>`` and the flipped loss by ``- y <w, q->``. The paper's objective has both signs the other way
round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cvxpy as cp
import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.supports import BoxSupport
from models.problem import SiteProblem
from models.reference.solve import CVXPY_NORM
from tests.oracles.worst_case import minimise

Variant = Literal["printed", "mended", "complete"]


@dataclass(frozen=True)
class PaperSolution:
    """``objective``: the program's own optimal value, as a risk. ``risk``: expected hinge loss of its distribution."""

    objective: float
    risk: float


def solve_paper_program(weights: FloatArray, problem: SiteProblem, variant: Variant) -> PaperSolution:
    """Solve FDR eq. (7) at weights (P,) on a box, without an intercept."""
    spec, x, y = problem.spec, problem.features, problem.labels
    if not isinstance(spec.support, BoxSupport) or spec.fit_intercept:
        raise ProblemError("FDR eq. (7) has a box support and no intercept")
    n = y.shape[0]
    masses = {name: cp.Variable(n, nonneg=True) for name in ("kept", "flipped", "alone")}
    moves = {name: cp.Variable(x.shape) for name in ("kept", "flipped")}
    sign = -1.0 if variant == "printed" else 1.0
    margins = y * (x @ weights)
    gain = cp.multiply(y, (moves["kept"] - moves["flipped"]) @ weights)
    value = masses["kept"] @ (1 - margins) + masses["flipped"] @ (1 + margins) + sign * cp.sum(gain)
    cost = sum(cp.sum(cp.norm(move, CVXPY_NORM[spec.transport_norm], axis=1)) for move in moves.values())
    constraints = [
        cost + spec.label_flip_cost * cp.sum(masses["flipped"]) <= n * spec.radius,
        masses["kept"] + masses["flipped"] + masses["alone"] == 1,
    ]
    for name, move in moves.items():
        constraints += _inside(masses[name], move, x, spec.support)
    if variant != "complete":
        constraints.append(masses["alone"] == 0)
    objective = -minimise(-value / n, constraints)
    return PaperSolution(objective, _risk(weights, x, y, masses, moves))


def _inside(mass: cp.Variable, move: cp.Variable, x: FloatArray, box: BoxSupport) -> list[cp.Constraint]:
    """``beta low <= beta x - q <= beta high``."""
    column = cp.reshape(mass, (x.shape[0], 1), order="C")
    place = cp.multiply(column @ np.ones((1, x.shape[1])), x) - move
    return [place >= column @ box.low[None, :], place <= column @ box.high[None, :]]


def _risk(
    weights: FloatArray, x: FloatArray, y: FloatArray, masses: dict[str, cp.Variable], moves: dict[str, cp.Variable]
) -> float:
    total = np.float64(0.0)
    for name, label in (("kept", y), ("flipped", -y)):
        mass = np.maximum(masses[name].value, 0.0)
        there = mass > 1e-9
        points = x[there] - moves[name].value[there] / mass[there, None]
        total += mass[there] @ np.maximum(0.0, 1.0 - label[there] * (points @ weights))
    alone = np.maximum(masses["alone"].value, 0.0)
    total += alone @ np.maximum(0.0, 1.0 - y * (x @ weights))
    return float(total) / len(y)
