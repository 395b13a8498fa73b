"""Clarabel through CVXPY, at tight tolerance."""

from __future__ import annotations

import math
import warnings

import cvxpy as cp

from models.basics import TransportNorm
from models.geometry.supports import BoxSupport
from models.problem import RobustSpec

CVXPY_NORM: dict[TransportNorm, int | str] = {"l1": 1, "l2": 2, "linf": "inf"}

_TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "tol_ktratio": 1e-9}
"""As near to float64's rounding as Clarabel comes without failing."""

_WAYS: tuple[dict[str, bool | float], ...] = ({}, {"equilibrate_enable": False}, {"max_step_fraction": 0.9})
"""Settings tried in turn: near a zero multiplier Clarabel's scaling, or its long last steps, now and then fail."""


def price_variable(spec: RobustSpec) -> cp.Expression:
    """Price of transport, at or above 0, in units in which it is of order one.

    Where moving labels or targets is cheap but the radius does not pay for many, the price is of the order of
    ``1 / label_flip_cost``.
    """
    rare = spec.radius < spec.label_flip_cost < 1
    dear = _targets_without_end(spec) and spec.label_flip_cost < 1
    return cp.Variable(nonneg=True) / (spec.label_flip_cost if rare or dear else 1.0)


def _targets_without_end(spec: RobustSpec) -> bool:
    if spec.loss.task != "regression":
        return False
    if isinstance(spec.support, BoxSupport):
        return math.isinf(spec.support.target_low) or math.isinf(spec.support.target_high)
    return spec.support is None


def solve_tightly(program: cp.Problem) -> float:
    """Value of a program; raises ``ArithmeticError`` where the solver finds none."""
    failures = []
    for settings in _WAYS:
        try:
            _solve(program, settings)
        except cp.SolverError as failure:
            failures.append(failure)
            continue
        if program.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            return float(program.value)
        raise ArithmeticError(f"the reference solver ended with status {program.status}")
    raise ArithmeticError("the reference solver failed on this problem") from failures[0]


def _solve(program: cp.Problem, settings: dict[str, bool | float]) -> None:
    with warnings.catch_warnings():
        # Short of 1e-11 it still gets as near as it can, and says so in the status.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        # A cold start: the answer must not depend on what was asked before.
        program.solve(solver=cp.CLARABEL, warm_start=False, max_iter=400, **_TIGHT, **settings)
