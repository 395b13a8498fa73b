r"""CVXPY models of the worst-case risk of one site: readable, slow, the oracle of the tests.

The infimum form of DRFL Proposition 4.2 has the plane as an expression, so it serves for a fixed plane and for
training alike. The sets Omega_s are in ``free_sets`` (unbounded support) and ``pieces`` (box and polytope).
"""

from __future__ import annotations

import cvxpy as cp

from models.basics import FloatArray
from models.problem import SiteProblem
from models.reference.free_sets import free_model
from models.reference.pieces import piece_model
from models.reference.solve import minimise


def risk_model(weights: cp.Expression, problem: SiteProblem) -> tuple[cp.Expression, list[cp.Constraint]]:
    """Worst-case risk at ``weights`` (D,) as a CVXPY expression that is to be minimised, and its constraints."""
    n_features = problem.features.shape[1]
    plane = weights[:n_features]
    intercept = weights[n_features] if problem.spec.fit_intercept else 0.0
    if problem.spec.support is None:
        return free_model(plane, intercept, problem)
    model = piece_model(plane, intercept, problem)
    return model.risk, model.constraints


def reference_risk(weights: FloatArray, problem: SiteProblem) -> float:
    """Worst-case risk at fixed weights (D,), by Clarabel at tight tolerance."""
    objective, constraints = risk_model(cp.Constant(weights), problem)
    return minimise(objective, constraints)
