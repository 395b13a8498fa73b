"""CVXPY model of the client step, straight from its primal statement."""

from __future__ import annotations

import cvxpy as cp

from models.basics import FloatArray
from models.problem import SiteProblem
from tests.oracles.worst_case import minimise, risk_model


def reference_value(problem: SiteProblem, centre: FloatArray, penalty: float, ridge: float = 0.0) -> float:
    """Optimal ``min_w r(w) + ridge ||w||^2 + penalty/2 ||w - centre||^2``, for any support."""
    weights = cp.Variable(centre.size)
    risk, constraints = risk_model(weights, problem)
    away = cp.sum_squares(weights - centre)
    return minimise(risk + ridge * cp.sum_squares(weights) + 0.5 * penalty * away, constraints)
