r"""What proves a prox answer: a minorant of the worst-case risk and a duality gap, from any dual weights.

The risk (FDR eq. 9, unbounded support) is

    r(u) = min_{lam >= ||u||_*} radius lam + mean_i max(0, 1 - m_i, 1 + m_i - flip lam),    m_i = y_i (<u, x_i> + b).

Take weights ``a_i, b_i >= 0`` with ``a_i + b_i <= 1`` for the kept and the flipped piece of each row. A maximum is at
least any such combination of its entries, so for every u

    r(u) >= mean(a + b) + <q, u> + min_{lam >= ||u||_*} (radius - flip mean(b)) lam

where ``q = mean_i (b_i - a_i) y_i (x_i, 1)``. With ``mu = radius - flip mean(b) >= 0`` the minimum is
``mu ||u||_* >= <z, u>`` for each z with transport norm at most mu. So ``offset = mean(a + b)`` and ``slope = q + z``
bound r from below everywhere, wherever the weights came from: `clip_weights` and `clip_norm_dual` bring them into
their sets, hence the bound never rests on how far a solver got (it holds up to the rounding of the sums that form it).
At the optimum ``slope = -stiffness (w - anchor)`` and the bound touches r at w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.geometry.norms import dual_norm, vector_norm
from models.prox.hinge.breakpoints import row_losses
from models.prox.hinge.statement import Iterate, Point, Statement

_A_HAIR = 1.0 - 4.0 * float(np.finfo(float).eps)  # so that rounding of a scaling cannot leave a vector outside


@dataclass(frozen=True)
class Bound:
    """Minorant ``offset + <slope, u>`` of N times the worst-case risk.

    ``norm_slope`` (P,) is the part of ``slope`` that stands for ``norm_weight ||u||_*``. ``shares`` (n,) are the
    coefficients of the statement's signed rows in ``slope``.
    """

    offset: float
    slope: FloatArray
    norm_weight: float
    norm_slope: FloatArray
    shares: FloatArray


def clip_weights(keep: FloatArray, flip: FloatArray, budget: float) -> tuple[FloatArray, FloatArray]:
    """Dual weights brought into their set: at or above 0, at most 1 in sum, flipped mass at most ``budget``.

    ``flip`` is empty where no label can be flipped.
    """
    if not flip.size:
        return np.clip(keep, 0.0, 1.0), flip
    keep, flip = np.maximum(keep, 0.0), np.maximum(flip, 0.0)
    total = np.maximum(keep + flip, 1.0)
    keep /= total
    flip /= total
    mass = float(flip.sum())
    if mass > budget:
        flip *= budget / mass * _A_HAIR
    return keep, flip


def clip_norm_dual(dual: FloatArray, bound: float, norm: TransportNorm) -> FloatArray:
    """Scale ``dual`` so that its transport norm is at most ``bound``."""
    size = vector_norm(dual, norm)
    return dual if size <= bound else dual * (bound / size * _A_HAIR)


def minorant(problem: Statement, keep: FloatArray, flip: FloatArray, norm_dual: FloatArray) -> Bound:
    """Bound built from dual weights, which are clipped first; one product with the rows.

    ``norm_dual`` is signed as the stationarity equation subtracts it, so the bound's z is its negative.
    """
    budget = problem.price / problem.flip if problem.can_flip else 0.0
    keep, flip = clip_weights(keep, flip, budget)
    flipped = problem.flip * float(flip.sum()) if problem.can_flip else 0.0
    room = max(problem.price - flipped, 0.0)
    shares = flip - keep if flip.size else -keep
    slope = shares @ problem.rows
    slope += problem.linear
    norm_slope = clip_norm_dual(-norm_dual, room, problem.norm)
    slope[: problem.n_features] += norm_slope
    return Bound(problem.constant + float(keep.sum()) + float(flip.sum()), slope, room, norm_slope, shares)


def subgradient_of_norm(problem: Statement, point: Point) -> FloatArray:
    r"""A norm dual (P,) that is exactly one of the norm at the point's weights, as near its own as that allows.

    With ``mu = price - flip sum(b)`` it is minus a z of transport norm mu with ``<z, w> = mu ||w||_*``: l2 ``mu w /
    ||w||``; linf ``mu sign(w)``, and the point's own within +-mu where a weight is 0; l1 the point's own on the
    weights of the largest size, scaled to mu in sum. In a stiff step the point's own is a small difference of large
    numbers, ``stiffness (w - anchor)`` among them, and its rounding alone is more than the gap that is allowed; what
    this one leaves of the stationarity equation costs its square over the stiffness. Zeros at weights 0.
    """
    features = point.weights[: problem.n_features]
    size, own = dual_norm(features, problem.norm), -point.norm_dual
    room = max(problem.price - (problem.flip * float(point.flip.sum()) if problem.can_flip else 0.0), 0.0)
    if size == 0.0:
        return np.zeros_like(features)
    if problem.norm == "l2":
        return np.asarray(-room * (features / size))
    if problem.norm == "linf":
        return np.asarray(-np.where(features == 0.0, np.clip(own, -room, room), room * np.sign(features)))
    pull = np.where(np.abs(features) >= size * _A_HAIR, np.maximum(own * np.sign(features), 0.0), 0.0)
    total = float(pull.sum())
    return np.asarray(-np.sign(features) * pull * (room / total if total > 0.0 else 0.0))


def lower_value(problem: Statement, bound: Bound) -> float:
    """Dual objective: the least value of the bound plus the proximal term."""
    return bound.offset + float(bound.slope @ problem.anchor - bound.slope @ bound.slope / (2.0 * problem.stiffness))


def upper_value(problem: Statement, weights: FloatArray, multiplier: float) -> tuple[float, float]:
    """Primal objective at a point, and the multiplier raised to the dual norm where it was below."""
    if problem.is_robust:
        multiplier = max(multiplier, dual_norm(weights[: problem.n_features], problem.norm))
    losses = row_losses(problem.rows @ weights, multiplier, problem.flip)
    away = weights - problem.anchor
    value = problem.constant + float(losses.sum() + problem.linear @ weights)
    value += 0.5 * problem.stiffness * float(away @ away)
    return (value + problem.price * multiplier, multiplier) if problem.is_robust else (value, math.inf)


def certified(problem: Statement, point: Point) -> Iterate:
    """A point with its objective and true duality gap."""
    value, multiplier = upper_value(problem, point.weights, point.multiplier)
    bound = minorant(problem, point.keep, point.flip, point.norm_dual)
    gap = value - lower_value(problem, bound)
    return Iterate(point.weights, multiplier, point.keep, point.flip, point.norm_dual, gap, value)
