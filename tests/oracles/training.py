"""CVXPY model of training with fixed site weights, ADMM-SC's ridge included: the oracle of the optimum."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from models.basics import FloatArray
from models.problem import SiteProblem
from tests.oracles.worst_case import minimise, risk_model


def reference_training(
    sites: Sequence[SiteProblem], shares: Sequence[float], ridge: Sequence[float] | None = None
) -> tuple[float, FloatArray]:
    r"""Minimum and minimiser (D,) of ``sum_g a_g (r_g(w) + ridge_g ||w||_2^2)`` (FDR eq. 5; the ridge is ADMM-SC's)."""
    weights = cp.Variable(sites[0].features.shape[1] + int(sites[0].spec.fit_intercept))
    objective: cp.Expression = cp.Constant(0.0)
    constraints: list[cp.Constraint] = []
    for site, share in zip(sites, shares, strict=True):
        risk, more = risk_model(weights, site)
        objective = objective + share * risk
        constraints += more
    if ridge is not None:
        objective = objective + float(np.dot(shares, ridge)) * cp.sum_squares(weights)
    return minimise(objective, constraints), np.asarray(weights.value)
