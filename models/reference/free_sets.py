r"""The sets Omega_s of DRFL Appendix B where features (and targets) may move without bounds, for every loss.

Two readings of the paper, checked against the exact losses:

- Corollary B.5 restricts ``phi`` to be at or above 0; then the smooth hinge comes out too large for margins below -1
  (at -2: 3 for 2.5). With ``phi`` free the corollary holds, and so it stands here.
- ``||(w, -1)||_*`` in Corollaries B.1 to B.3 is the dual of the norm ``||x|| + kappa |y|`` of eq. 12, that is
  ``max(||w||_*, 1 / kappa)``.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from models.basics import ProblemError
from models.geometry.norms import DUAL_NORM
from models.losses.base import Loss
from models.losses.huber import Huber
from models.losses.logistic import Logistic
from models.losses.smooth_hinge import SmoothHinge
from models.problem import SiteProblem
from models.reference.solve import CVXPY_NORM, price_variable

Model = tuple[cp.Expression, list[cp.Constraint]]


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
