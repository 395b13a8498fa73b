r"""CVXPY models of the worst-case risk of one site: readable, slow, for a fixed plane and for training alike.

The infimum form of DRFL Proposition 4.2, with the sets Omega_s of Appendix B: on a box or a polytope they are those of
``models.reference.pieces``, where features (and targets) may move without bounds those of ``free_model``, for every
loss. Two readings of the paper, checked against the exact losses:

- Corollary B.5 restricts ``phi`` to be at or above 0; then the smooth hinge comes out too large for margins below -1
  (at -2: 3 for 2.5). With ``phi`` free the corollary holds, and so it stands here.
- ``||(w, -1)||_*`` in Corollaries B.1 to B.3 is the dual of the norm ``||x|| + kappa |y|`` of eq. 12, that is
  ``max(||w||_*, 1 / kappa)``.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.norms import DUAL_NORM
from models.geometry.supports import BoxSupport
from models.losses.base import Loss
from models.losses.classification import Logistic, SmoothHinge
from models.losses.regression import Huber
from models.problem import SiteProblem
from models.reference.pieces import Walls, piece_model, walls
from models.reference.solve import CVXPY_NORM, price_variable, solve_tightly

Model = tuple[cp.Expression, list[cp.Constraint]]


def minimise(objective: cp.Expression, constraints: list[cp.Constraint]) -> float:
    """Minimum by Clarabel with every tolerance at 1e-11 or as near to it as double precision lets it come."""
    return solve_tightly(cp.Problem(cp.Minimize(objective), constraints))


def reference_risk(weights: FloatArray, problem: SiteProblem) -> float:
    """Worst-case risk at fixed weights (D,), by Clarabel at tight tolerance."""
    objective, constraints = risk_model(cp.Constant(weights), problem)
    return minimise(objective, constraints)


def risk_model(weights: cp.Expression, problem: SiteProblem) -> Model:
    """Worst-case risk at ``weights`` (D,) as a CVXPY expression that is to be minimised, and its constraints."""
    n_features, support = problem.features.shape[1], problem.spec.support
    plane = weights[:n_features]
    intercept = weights[n_features] if problem.spec.fit_intercept else 0.0
    if support is None:
        return free_model(plane, intercept, problem)
    regression = problem.spec.loss.task == "regression"
    place = box_walls(support, regression) if isinstance(support, BoxSupport) else walls(problem)
    model = piece_model(plane, intercept, problem, place)
    return model.risk, model.constraints


def box_walls(box: BoxSupport, regression: bool) -> Walls:
    """Walls of a box, those of the target's range among them where it is a regression's."""
    p = box.low.shape[0]
    matrix, column = np.vstack([np.eye(p), -np.eye(p)]), np.zeros(2 * p)
    limits = np.concatenate([box.high, -box.low])
    for sign, bound in ((1.0, box.target_high), (-1.0, -box.target_low)):
        if regression and np.isfinite(bound):
            matrix, column = np.vstack([matrix, np.zeros(p)]), np.append(column, sign)
            limits = np.append(limits, bound)
    return Walls(matrix, column, limits)


def free_model(plane: cp.Expression, intercept: cp.Expression | float, problem: SiteProblem) -> Model:
    """Worst-case risk at a plane (P,) as an expression that is to be minimised, and its constraints."""
    spec, labels, loss = problem.spec, problem.labels, problem.spec.loss
    scores = problem.features @ plane + intercept
    multiplier = price_variable(spec)
    constraints = [loss.lipschitz * cp.norm(plane, CVXPY_NORM[DUAL_NORM[spec.transport_norm]]) <= multiplier]
    if loss.task == "regression":
        constraints.append(loss.lipschitz / spec.label_flip_cost <= multiplier)
        rows = epigraph(loss, scores - labels)
        return spec.radius * multiplier + problem.counts @ rows / labels.shape[0], constraints
    margins = cp.multiply(labels, scores)
    rows = epigraph(loss, margins)
    if np.isfinite(spec.label_flip_cost):
        alpha = cp.Variable(labels.shape[0])
        constraints += [rows <= alpha, epigraph(loss, -margins) - spec.label_flip_cost * multiplier <= alpha]
        rows = alpha
    return spec.radius * multiplier + problem.counts @ rows / labels.shape[0], constraints


def epigraph(loss: Loss, z: cp.Expression) -> cp.Expression:
    """Expression (N,) whose least value over its own variables is ``L(z)``."""
    count = z.shape[0]
    if loss.lines is not None:
        return cp.maximum(*(line.slope * z + line.height for line in loss.lines))
    if isinstance(loss, Huber):
        mu = cp.Variable(count)
        return 0.5 * cp.square(mu) + loss.epsilon * cp.abs(z - mu)
    if isinstance(loss, SmoothHinge):
        phi = cp.Variable(count)
        return 0.5 * cp.square(phi - z) + cp.pos(1 - phi)
    if isinstance(loss, Logistic):
        return cp.logistic(-z)
    raise ProblemError(f"there is no reference model of the loss {loss.name}")
