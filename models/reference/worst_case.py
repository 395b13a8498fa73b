r"""CVXPY models of the worst-case hinge risk of one site: readable, slow, the oracle of the tests.

The infimum form has the plane as an expression, so it serves for a fixed plane and for training alike. On a box
``low <= x <= high`` each supremum over a move becomes, by duality (DRFL Proposition 6.3 and 6.4),

    sup_{low - x <= d <= high - x} <a, d> - lam ||d||
        = min_{p, q >= 0, ||a - p + q||_* <= lam} <p, high - x> + <q, x - low>.
"""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from models.ambiguity import DUAL_NORM
from models.problem import BoxSupport, FloatArray, SiteProblem, TransportNorm

CVXPY_NORM: dict[TransportNorm, int | str] = {"l1": 1, "l2": 2, "linf": "inf"}


def risk_model(weights: cp.Expression, problem: SiteProblem) -> tuple[cp.Expression, list[cp.Constraint]]:
    """Worst-case risk at ``weights`` (D,) as a CVXPY expression that is to be minimised, and its constraints."""
    spec, n_features = problem.spec, problem.features.shape[1]
    plane = weights[:n_features]
    intercept = weights[n_features] if spec.fit_intercept else 0.0
    margins = cp.multiply(problem.labels, problem.features @ plane + intercept)
    # Where flips are too dear to buy many, the price is of the order of 1 / label_flip_cost: bring it back to order 1.
    rare = spec.radius < spec.label_flip_cost < 1
    price = cp.Variable(nonneg=True) / (spec.label_flip_cost if rare else 1.0)
    loss = cp.Variable(problem.labels.shape[0], nonneg=True)
    constraints: list[cp.Constraint] = []
    kept, flipped = 1 - margins, 1 + margins
    if spec.support is None:
        constraints.append(cp.norm(plane, CVXPY_NORM[DUAL_NORM[spec.transport_norm]]) <= price)
    else:
        gain, more = _box_gain(plane, -problem.labels, price, problem.features, spec.support, spec.transport_norm)
        kept, constraints = kept + gain, constraints + more
        if np.isfinite(spec.label_flip_cost):
            gain, more = _box_gain(plane, problem.labels, price, problem.features, spec.support, spec.transport_norm)
            flipped, constraints = flipped + gain, constraints + more
    constraints.append(loss >= kept)
    if np.isfinite(spec.label_flip_cost):
        constraints.append(loss >= flipped - spec.label_flip_cost * price)
    return spec.radius * price + cp.sum(loss) / problem.labels.shape[0], constraints


def _box_gain(
    plane: cp.Expression, signs: FloatArray, price: cp.Expression, x: FloatArray, box: BoxSupport, norm: TransportNorm
) -> tuple[cp.Expression, list[cp.Constraint]]:
    """Supremum over the moves of each sample of ``sign <w, d> - price ||d||``."""
    up = cp.Variable(x.shape, nonneg=True)
    down = cp.Variable(x.shape, nonneg=True)
    pull = signs[:, None] @ cp.reshape(plane, (1, x.shape[1]), order="C") - up + down
    gain = cp.sum(cp.multiply(up, box.high - x) + cp.multiply(down, x - box.low), axis=1)
    return gain, [cp.norm(pull, CVXPY_NORM[DUAL_NORM[norm]], axis=1) <= price]


def reference_risk(weights: FloatArray, problem: SiteProblem) -> float:
    """Worst-case risk at fixed weights (D,), by Clarabel at tight tolerance."""
    objective, constraints = risk_model(cp.Constant(weights), problem)
    return minimise(objective, constraints)


def minimise(objective: cp.Expression, constraints: list[cp.Constraint]) -> float:
    """Minimum by Clarabel with every tolerance at 1e-11 or as near to it as double precision lets it come."""
    program = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        # Short of 1e-11 it still gets as near as it can, and says so in the status.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, tol_ktratio=1e-9, max_iter=400
        )
    if program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise ArithmeticError(f"the reference solver ended with status {program.status}")
    return float(program.value)
