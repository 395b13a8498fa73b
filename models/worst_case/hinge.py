r"""Saddle point of the worst-case hinge risk at fixed weights, on an unbounded support or on a box.

Unbounded support (FDR eq. 9; MATH section 1):

    r(w) = min_{lam >= ||w||_*} radius lam + mean_i max(0, 1 - m_i, 1 + m_i - label_flip_cost lam),

with ``m_i = y_i (<w, x_i> + b)``: the adversary buys label flips in the order of ``min(1 + m_i, 2 m_i)``
(``models.label_flips``) and spends the rest of the radius on moving features. Box support is in
``models.box_worst_case``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from models.ambiguity import dual_norm, steepest_move
from models.box_worst_case import solve_box
from models.label_flips import buy_flips
from models.problem import FloatArray, PolytopeSupport, ProblemError, SiteProblem
from models.saddle import FLIPPED, KEPT, UNTOUCHED, Judged, Plan, Rows, Saddle


def hinge_rows(weights: FloatArray, intercept: float, problem: SiteProblem) -> Rows:
    """Rows of a site with the plane ``weights`` (P,) that is judged; raises ``ProblemError`` on a polytope."""
    spec = problem.spec
    if isinstance(spec.support, PolytopeSupport):
        raise ProblemError("this is for an unbounded support or a box, the support is a polytope")
    margins = problem.labels * (problem.features @ weights + intercept)
    return Rows(
        problem.features, problem.labels, weights, margins,
        spec.radius, spec.label_flip_cost, spec.transport_norm, spec.support,
    )  # fmt: skip


def judge_hinge(rows: Rows) -> Judged:
    """Worst-case risk with its cut; the norm has a part of its own on an unbounded support only."""
    saddle = solve(rows)
    norm_weight = saddle.leftover if rows.support is None else 0.0
    gradient, flat = subgradient(rows, replace(saddle, leftover=saddle.leftover - norm_weight))
    return Judged(saddle.value, saddle.price, gradient, flat, norm_weight)


def solve(rows: Rows) -> Saddle:
    """Saddle point of the worst-case risk at fixed weights."""
    floor = dual_norm(rows.weights, rows.transport_norm)
    saddle = _solve_unbounded(rows, floor)
    if rows.support is None or floor == 0 or saddle.leftover <= 0:
        return saddle
    # Moving features beats the next flip: how much can be moved is now a matter of the walls.
    return solve_box(rows, rows.support, saddle)


def _solve_unbounded(rows: Rows, floor: float) -> Saddle:
    hinge = np.maximum(0.0, 1.0 - rows.margins)
    act = np.where(rows.margins < 1.0, KEPT, UNTOUCHED).astype(np.int8)
    extra = np.minimum(1.0 + rows.margins, 2.0 * rows.margins)
    flips = buy_flips(extra, rows.radius, rows.label_flip_cost, floor)
    value = float(hinge.mean()) + flips.added / rows.count + flips.leftover * floor
    plans = tuple(_flip(act, flipped, share) for share, flipped in flips.sets)
    return Saddle(value, flips.price, plans, flips.leftover)


def _flip(act: NDArray[np.int8], rows: NDArray[np.intp], share: float) -> Plan:
    flipped = act.copy()
    flipped[rows] = FLIPPED
    return Plan(share, flipped)


def subgradient(rows: Rows, saddle: Saddle) -> tuple[FloatArray, float]:
    """Subgradient in the weights (P,) and in the intercept: the gradient of the loss under the adversary's mixture."""
    coefficients = saddle.label_coefficients(rows.labels)
    gradient = coefficients @ rows.features
    if saddle.moved is not None:
        gradient += np.sign(rows.weights) * saddle.moved
    elif saddle.leftover > 0:
        gradient += saddle.leftover * steepest_move(rows.weights, rows.transport_norm)
    return gradient, float(coefficients.sum())
