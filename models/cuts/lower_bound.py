r"""A lower bound on the least risk that follows from cuts by arithmetic alone, whatever solver found the multipliers.

Over a ball of mixtures the risk is nowhere below that of one mixture of the ball, so a bound for any one of them holds
(``CutModel.with_mixture``); the shares a_g below are then those of that mixture.

Take multipliers y >= 0 of the cuts whose sum over the cuts of site g is at most a_g; the floor of g takes the rest.
Summing the cuts and floors with them,

    F(w) >= c + <v, w> + Z ||w||_*     for every w,      Z = sum_j y_j norm_weight_j + sum_g rest_g floor_g.

Where the feature part of v has transport norm at most Z and its intercept part is 0, c is a lower bound on F
everywhere: no compact set needed. Multipliers from a solver meet this up to its accuracy; they are also corrected, by
the least change relative to their size, and the better bound counts. What is left over is paid for:

- With Phi = sum_g a_g floor_g > 0 the feature part beyond Z is carried by the floors: the mixture
  ``(1 - s) (c + <v, w> + Z ||w||_*) + s Phi ||w||_*`` is at least ``(1 - s) c`` for s = excess / (excess + Phi).
  The intercept part is charged over the set of the w at which the model is not above its value U at a reference point
  (outside it F > U >= the bound anyway): there ``||w||_* <= U / Phi``, and each cut bounds the intercept from one side,
  since no other site's risk is negative: ``a_g (offset_j + <slope_j, w>) <= U``.
- With Phi = 0 (a box, or radius 0) all of v is charged over that set, which the multipliers bound themselves: the
  slacks z_j(w) >= 0 of the cuts and floors obey sum_j y_j z_j(w) <= U - c - <v, w>, at the reference point u too, so

      sigma |D| <= sum_j y_j |z_j(w) - z_j(u)| <= 2 (U - c - <v, u>) + |<v, w - u>|,

  D being w - u within the span of the directions in which sum_j y_j^2 b_j b_j', b_j = (slope_j, -e_g) with the heights
  eliminated, has an eigenvalue of at least sigma^2. In the other directions the cuts that count are flat, and v is
  rounding; where it is more than that, the bound is 0.

All statements hold up to float64 rounding of the sums themselves, for which an allowance is taken off.
"""

from __future__ import annotations

import numpy as np

from models.ambiguity import vector_norm
from models.cut_model import CutModel
from models.problem import FloatArray, TransportNorm

_EPS = float(np.finfo(np.float64).eps)
_CORRECTIONS = 2
_CLOSE = 1e-9
_IDLE = 1e-10
"""Multipliers up to here are what an interior point leaves of zero; without them flat directions are flat."""


def lower_bound(model: CutModel, multipliers: FloatArray, reference: FloatArray) -> float:
    """Lower bound on ``min F`` from any multipliers (m,) of the cuts; at least 0, since no loss is negative.

    Parameters
    ----------
    model : the cuts. multipliers : (m,), need be neither feasible nor optimal. reference : (D,) any point, best near
    the minimiser.
    """
    if model.site.shape[0] == 0:
        return 0.0
    bound = 0.0
    for least in (0.0, _IDLE):
        cuts = _normalised(model, np.where(multipliers > least, multipliers, 0.0))
        aim = float(cuts @ model.offset)
        for attempt in range(_CORRECTIONS + 1):
            if attempt:
                cuts = _corrected(model, cuts, exactly=attempt == _CORRECTIONS)
            bound = max(bound, _bound(model, cuts, reference))
            if bound >= aim - _CLOSE * abs(aim):
                return bound
    return bound


def tilted_lower_bound(model: CutModel, multipliers: FloatArray, tilt: FloatArray, reach: FloatArray) -> float:
    """Lower bound on ``sum_g a_g r_g(w) + <tilt, w>`` over the w with ``|w| <= reach``, from any multipliers (m,).

    What the norm does not carry of the slope is charged over all of the reach (D,); the bound may be below 0.
    """
    cuts = _normalised(model, multipliers)
    slope, norm_weight = _sums(model, cuts)
    left = slope + tilt
    steep = left[: model.n_features] / model.units
    left[: model.n_features] -= model.units * nearest_in_ball(steep, norm_weight, model.transport_norm)
    rounding = 8 * _EPS * float(cuts @ np.abs(model.offset))
    return float(cuts @ model.offset) - float(np.abs(left) @ reach) - rounding


def _bound(model: CutModel, cuts: FloatArray, reference: FloatArray) -> float:
    """The bound that these multipliers prove as they are."""
    slope, norm_weight = _sums(model, cuts)
    support = float(model.shares @ model.floor)
    if support > 0:
        excess = float(vector_norm(slope[: model.n_features] / model.units, model.transport_norm)) - norm_weight
        left = support / (support + max(excess, 0.0))
        height = float(cuts @ model.offset + slope[model.n_features :] @ reference[model.n_features :])
        charge = _intercept_charge(model, slope[model.n_features :], reference, support)
    else:
        left, height = 1.0, float(cuts @ (model.offset + model.slope @ reference))
        charge = _tilt_charge(model, cuts, slope, reference, height)
    rounding = 8 * _EPS * float(cuts @ (np.abs(model.offset) + np.abs(model.slope) @ np.abs(reference)))
    return max(0.0, left * (height - charge - rounding))


def _sums(model: CutModel, cuts: FloatArray) -> tuple[FloatArray, float]:
    """Slope v (D,) and norm weight Z of the weighted sum."""
    return cuts @ model.slope, float(cuts @ model.norm_weight + model.floors_left(cuts) @ model.floor)


def _normalised(model: CutModel, multipliers: FloatArray) -> FloatArray:
    """Multipliers clipped at 0 and, where a site's sum is above its weight, scaled down to it."""
    cuts = np.maximum(np.nan_to_num(multipliers), 0.0)
    sums = np.bincount(model.site, weights=cuts, minlength=model.shares.shape[0])
    scale = np.divide(model.shares, sums, out=np.ones_like(sums), where=sums > model.shares)
    return np.asarray(cuts * scale[model.site])


def _intercept_charge(model: CutModel, tilt: FloatArray, reference: FloatArray, support: float) -> float:
    """What the intercept part of the slope, (0,) or (1,), can take off where the model is not above the reference."""
    if not tilt.any():
        return 0.0
    upper = model.value(reference)
    features, flat = model.slope[:, : model.n_features], model.slope[:, -1]
    room = np.divide(upper, model.shares, out=np.full_like(model.shares, np.inf), where=model.shares > 0)[model.site]
    steep = vector_norm(features / model.units, model.transport_norm) + np.maximum(-model.norm_weight, 0.0)
    room = room - model.offset + steep * (upper / support)
    highest = float((room[flat > 0] / flat[flat > 0]).min(initial=np.inf))
    lowest = float((room[flat < 0] / flat[flat < 0]).max(initial=-np.inf))
    return abs(float(tilt[0])) * max(highest - float(reference[-1]), float(reference[-1]) - lowest, 0.0)


def _tilt_charge(model: CutModel, cuts: FloatArray, tilt: FloatArray, reference: FloatArray, height: float) -> float:
    """What the slope can take off in a model without a norm where it is not above the reference."""
    n_sites = model.shares.shape[0]
    weighted = np.hstack([model.slope, np.eye(n_sites)[model.site]]) * cuts[:, None]
    heights = np.einsum("jg,jg->g", weighted[:, -n_sites:], weighted[:, -n_sites:]) + model.floors_left(cuts) ** 2
    cross = weighted[:, :-n_sites].T @ weighted[:, -n_sites:]
    inverse = np.divide(1.0, heights, out=np.zeros_like(heights), where=heights > 0)
    values, vectors = np.linalg.eigh(weighted[:, :-n_sites].T @ weighted[:, :-n_sites] - (cross * inverse) @ cross.T)
    steep = float(np.abs(model.slope).max(initial=0.0))
    firm = values > max(1e-12 * values[-1], _EPS * steep * steep)
    inside = vectors.T @ tilt
    flat = float(np.sqrt(inside[~firm] @ inside[~firm]))
    if flat > 64 * _EPS * steep:
        return float("inf")
    size = float(np.sqrt(inside[firm] @ inside[firm]))
    stretch = float(np.sqrt(values[firm].min(initial=np.inf)))
    if size >= stretch:
        return float("inf")
    return size * 2 * max(model.value(reference) - height, 0.0) / (stretch - size)


def _corrected(model: CutModel, cuts: FloatArray, exactly: bool) -> FloatArray:
    """Nearest multipliers, relative to their size, whose slope the same norm weight covers; clipped, normalised.

    By the normal equations, or ``exactly`` by a singular value decomposition, for cuts that are nearly flat somewhere.
    """
    slope, norm_weight = _sums(model, cuts)
    surplus = slope.copy()
    steep = slope[: model.n_features] / model.units
    surplus[: model.n_features] -= model.units * nearest_in_ball(steep, norm_weight, model.transport_norm)
    if not surplus.any():
        return cuts
    n_sites, m = model.shares.shape[0], model.site.shape[0]
    rows = np.zeros((m + n_sites, slope.shape[0] + n_sites + 1))
    rows[:m, : slope.shape[0]] = model.slope
    rows[:, slope.shape[0] : -1] = np.vstack([np.eye(n_sites)[model.site], np.eye(n_sites)])
    rows[:, -1] = np.concatenate([model.norm_weight, model.floor])
    weights = np.concatenate([cuts, model.floors_left(cuts)])
    change = np.concatenate([surplus, np.zeros(n_sites + 1)])
    if exactly:
        roots = np.sqrt(weights)
        moved = np.linalg.lstsq((rows * roots[:, None]).T, change, rcond=_EPS)[0]
        return _normalised(model, (weights - roots * moved)[:m])
    spread = (rows.T * weights) @ rows
    scale = 1.0 / np.sqrt(np.maximum(spread.diagonal(), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(spread * scale[:, None] * scale)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > 1e-14 * values[-1])
    shift = scale * (vectors @ (inverse * (vectors.T @ (scale * change))))
    return _normalised(model, (weights * (1.0 - rows @ shift))[:m])


def nearest_in_ball(vector: FloatArray, radius: float, norm: TransportNorm) -> FloatArray:
    """Euclidean projection on the ball of a norm."""
    if norm == "linf":
        return np.clip(vector, -radius, radius)
    size = float(vector_norm(vector, norm))
    if size <= radius:
        return vector
    if norm == "l2":
        return np.asarray(vector * (radius / size))
    falling = np.sort(np.abs(vector))[::-1]
    drops = (np.cumsum(falling) - radius) / np.arange(1, vector.shape[0] + 1)
    drop = max(float(drops[max(int(np.count_nonzero(falling > drops)), 1) - 1]), 0.0)
    return np.asarray(np.sign(vector) * np.maximum(np.abs(vector) - drop, 0.0))
