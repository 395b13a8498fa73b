r"""Saddle point of the worst-case hinge risk at fixed weights, on an unbounded support or on a box.

Unbounded support (FDR eq. 9; MATH section 1):

    r(w) = min_{lam >= ||w||_*} radius lam + mean_i max(0, 1 - m_i, 1 + m_i - label_flip_cost lam),

with ``m_i = y_i (<w, x_i> + b)``: the adversary buys label flips in the order of ``min(1 + m_i, 2 m_i)``
(``models.worst_case.label_flips``) and spends the rest of the radius on moving features. Box support is in
``models.worst_case.box_hinge``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.geometry.norms import dual_norm
from models.geometry.supports import PolytopeSupport
from models.problem import SiteProblem
from models.worst_case.box_hinge import mean_moves, solve_box
from models.worst_case.label_flips import buy_flips
from models.worst_case.saddle_point import FLIPPED, KEPT, UNTOUCHED, AdversaryAction, RiskEvaluation, Rows, Saddle


def balanced_sum(values: FloatArray) -> float:
    """Sum of numbers (N,), exactly 0 where as many of one size are above 0 as are below: those are added up apart.

    Rows of two classes of one size have no slope in the intercept where all are wrong. A slope of 1e-17 in its place,
    which is what one sum over all leaves, would say of the intercept that it ends at 1e17, and a proof that rests on
    the cut would have to pay for all of that way.
    """
    return float(values[values > 0].sum() + values[values < 0].sum())


def hinge_rows(weights: FloatArray, intercept: float, problem: SiteProblem) -> Rows:
    """Rows of a site with the plane ``weights`` (P,) that is evaluated; raises ``ProblemError`` on a polytope."""
    spec = problem.spec
    if isinstance(spec.support, PolytopeSupport):
        raise ProblemError("this is for an unbounded support or a box, the support is a polytope")
    margins = problem.labels * (problem.features @ weights + intercept)
    return Rows(
        problem.features, problem.labels, weights, margins,
        spec.radius, spec.label_flip_cost, spec.transport_norm, spec.support, problem.row_weights,
    )


def evaluate_hinge(rows: Rows) -> RiskEvaluation:
    """Worst-case risk with its cut; the norm has a part of its own on an unbounded support only."""
    saddle = solve(rows)
    coefficients = rows.weigh(saddle.label_coefficients(rows.labels))
    slope, intercept_slope = coefficients @ rows.features, balanced_sum(coefficients)
    if rows.support is None:
        return RiskEvaluation(
            saddle.value, saddle.multiplier, slope, intercept_slope, saddle.leftover, rows=coefficients
        )
    above, below = mean_moves(rows, rows.support, saddle)
    return RiskEvaluation(
        saddle.value, saddle.multiplier,
        slope + (above - below) / 2, intercept_slope, 0.0, swing=(above + below) / 2, rows=coefficients,
    )


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
    flips = buy_flips(extra, rows.radius, rows.label_flip_cost, floor, rows.row_weights)
    value = float(rows.weigh(hinge).mean()) + flips.added / rows.count + flips.leftover * floor
    actions = tuple(_flip(act, flipped, share) for share, flipped in flips.sets)
    return Saddle(value, flips.multiplier, actions, flips.leftover)


def _flip(act: NDArray[np.int8], rows: NDArray[np.intp], share: float) -> AdversaryAction:
    flipped = act.copy()
    flipped[rows] = FLIPPED
    return AdversaryAction(share, flipped)
