r"""Exact worst-case hinge risk over a Wasserstein ball: value, price, subgradient.

Unbounded support (FDR eq. 9; MATH section 1):

    r(w) = min_{lam >= ||w||_*} radius lam + mean_i max(0, 1 - m_i, 1 + m_i - label_flip_cost lam),

with ``m_i = y_i (<w, x_i> + b)``. For fixed weights the adversary buys label flips in the order of what they add to the
loss, ``min(1 + m_i, 2 m_i)``, at ``label_flip_cost / N`` each, as long as a flip pays more than moving features does
(``||w||_*`` a unit); the rest of the radius is spent on moving. So the value needs the k-th largest of N numbers and
nothing else: O(N P). Box support is in ``models.box_worst_case``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.ambiguity import box_support, check_rows, dual_norm, steepest_move
from models.box_worst_case import solve_box
from models.problem import FloatArray, ProblemError, RiskValue, RobustSpec, SiteProblem, TransportNorm
from models.saddle import FLIPPED, KEPT, UNTOUCHED, Plan, Rows, Saddle


@dataclass(frozen=True)
class WorstCase:
    """Worst-case risk at a plane.

    value : the worst-case risk. subgradient : (P,), in the weights. intercept_subgradient : in the intercept.
    dual : the optimal price of transport (lambda), what a small increase of the radius would add to the risk.
    """

    value: float
    subgradient: FloatArray
    dual: float
    intercept_subgradient: float


def worst_case_risk(
    weights: ArrayLike,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    radius: float,
    label_flip_cost: float,
    transport_norm: TransportNorm,
    support: tuple[ArrayLike, ArrayLike] | None = None,
    intercept: float = 0.0,
) -> WorstCase:
    r"""Exact ``sup { E_Q max(0, 1 - y (<w, x> + b)) : W(Q, empirical) <= radius }``.

    Parameters
    ----------
    weights : (P,); features : (N, P); labels : (N,) of -1 and +1.
    radius : Wasserstein radius, at or above 0, in the units of the features as given.
    label_flip_cost : cost kappa of a label flip, above 0; ``inf`` forbids flips.
    transport_norm : "l1", "l2" or "linf", the norm of a feature move (the weights meet its dual).
    support : None, or ``(low, high)`` (scalars or (P,)) for a box that the features cannot leave.
    intercept : b; free of transport cost.

    Raises
    ------
    ProblemError
        Where the problem as stated has no meaning; the text says what would be right.
    """
    rows = stated_rows(
        weights, features, labels, radius=radius, label_flip_cost=label_flip_cost, transport_norm=transport_norm,
        support=support, intercept=intercept,
    )  # fmt: skip
    saddle = solve(rows)
    gradient, flat = subgradient(rows, saddle)
    return WorstCase(saddle.value, gradient, saddle.price, flat)


def stated_rows(
    weights: ArrayLike,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    radius: float,
    label_flip_cost: float,
    transport_norm: TransportNorm,
    support: tuple[ArrayLike, ArrayLike] | None,
    intercept: float,
) -> Rows:
    """Checked rows from the arguments of :func:`worst_case_risk`; raises ``ProblemError``."""
    w, x, y = (np.asarray(part, dtype=np.float64) for part in (weights, features, labels))
    if w.ndim != 1 or x.ndim != 2 or w.shape[0] != x.shape[1]:
        raise ProblemError(f"weights must be (P,) and features (N, P), got {w.shape} and {x.shape}")
    if not (np.isfinite(w).all() and np.isfinite(intercept)):
        raise ProblemError("weights and intercept must be finite")
    box = box_support(support, x.shape[1])
    spec = RobustSpec(float(radius), float(label_flip_cost), transport_norm, box)
    check_rows(x, y, box)
    return _rows(w, float(intercept), SiteProblem(x, y, spec))


@dataclass(frozen=True)
class RiskCut:
    r"""Worst-case risk at weights and what it proves everywhere.

    ``r(u) >= value + <slope, u - w> + norm_weight (||u||_* - ||w||_*)`` for every u, with equality at w.
    ``norm_weight`` is the part of the radius not spent on label flips; 0 on a box, where the slope says it all.
    """

    value: float
    slope: FloatArray
    norm_weight: float


def site_cut(weights: FloatArray, problem: SiteProblem) -> RiskCut:
    """Worst-case risk of one site at weights (D,) with its cut, the norm part apart."""
    rows = site_rows(weights, problem)
    saddle = solve(rows)
    norm_weight = saddle.leftover if problem.spec.support is None else 0.0
    gradient, flat = subgradient(rows, replace(saddle, leftover=saddle.leftover - norm_weight))
    if problem.spec.fit_intercept:
        gradient = np.append(gradient, flat)
    return RiskCut(saddle.value, gradient, norm_weight)


def site_risk(weights: FloatArray, problem: SiteProblem) -> RiskValue:
    """Worst-case risk of one site at weights (D,), the intercept last when the problem has one."""
    rows = site_rows(weights, problem)
    saddle = solve(rows)
    gradient, flat = subgradient(rows, saddle)
    if problem.spec.fit_intercept:
        gradient = np.append(gradient, flat)
    return RiskValue(saddle.value, gradient, saddle.price)


def site_rows(weights: FloatArray, problem: SiteProblem) -> Rows:
    """Rows of a site with the plane that is judged."""
    n_features = problem.features.shape[1]
    wanted = n_features + int(problem.spec.fit_intercept)
    if weights.shape != (wanted,):
        raise ProblemError(f"weights must have shape ({wanted},), got {weights.shape}")
    intercept = float(weights[-1]) if problem.spec.fit_intercept else 0.0
    return _rows(weights[:n_features], intercept, problem)


def _rows(weights: FloatArray, intercept: float, problem: SiteProblem) -> Rows:
    spec = problem.spec
    margins = problem.labels * (problem.features @ weights + intercept)
    return Rows(
        problem.features, problem.labels, weights, margins,
        spec.radius, spec.label_flip_cost, spec.transport_norm, spec.support,
    )  # fmt: skip


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
    if not np.isfinite(rows.label_flip_cost):
        value = float(hinge.mean()) + rows.radius * floor
        return Saddle(value, floor, (Plan(1.0, act),), rows.radius)
    extra = np.minimum(1.0 + rows.margins, 2.0 * rows.margins)
    affordable = _affordable_flips(rows)
    whole = int(affordable)
    order, threshold = _largest(extra, whole)
    if threshold > rows.label_flip_cost * floor:
        part = affordable - whole
        value = float(hinge.mean()) + float(extra[order[:whole]].sum() + part * threshold) / rows.count
        with np.errstate(over="ignore"):
            price = float(np.float64(threshold) / rows.label_flip_cost)
        plans = (_flip(act, order[: whole + 1], part), _flip(act, order[:whole], 1.0 - part))
        return Saddle(value, price, plans)
    chosen = np.flatnonzero(extra > rows.label_flip_cost * floor)
    leftover = max(0.0, rows.radius - rows.label_flip_cost * chosen.size / rows.count)
    value = float(hinge.mean()) + float(extra[chosen].sum()) / rows.count + leftover * floor
    return Saddle(value, floor, (_flip(act, chosen, 1.0),), leftover)


def _affordable_flips(rows: Rows) -> float:
    """Number of flips that the radius pays for, at most N."""
    cost = rows.label_flip_cost
    return float(rows.count) if rows.radius >= cost else min(float(rows.count), rows.radius / cost * rows.count)


def _largest(extra: FloatArray, whole: int) -> tuple[NDArray[np.intp], float]:
    """Indices of the ``whole + 1`` largest, the smallest of them last, and its value (-inf when all are taken)."""
    n = extra.shape[0]
    if whole >= n:
        return np.arange(n), -np.inf
    order = np.argpartition(extra, n - whole - 1)[n - whole - 1 :][::-1]
    smallest = int(np.argmin(extra[order]))
    order[[smallest, -1]] = order[[-1, smallest]]
    return order, float(extra[order[-1]])


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
