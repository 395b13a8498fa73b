r"""A lower bound on the least risk that follows from cuts by arithmetic alone, whatever solver found the multipliers.

Take multipliers y >= 0 of the cuts whose sum over the cuts of site g is at most a_g; the floor of g takes the rest.
Summing the cuts and floors with them,

    F(w) >= c + <v, w> + Z ||w||_*     for every w,      Z = sum_j y_j norm_weight_j + sum_g rest_g floor_g.

Where the feature part of v has transport norm at most Z and its intercept part is 0, c is a lower bound on F everywhere:
no compact set needed. So the multipliers are first corrected, by the least change relative to their size, towards that;
then

- what is left of the feature part beyond Z is paid for by the floors: with Phi = sum_g a_g floor_g > 0 the mixture
  ``(1 - s) (c + <v, w> + Z ||w||_*) + s Phi ||w||_*`` is at least ``(1 - s) c`` for s = excess / (excess + Phi);
- what is left otherwise, the tilt r (rounding, or all of it where a correction would make a multiplier negative), is
  charged over the set of the w at which the model is not above its value U at a reference point u; outside that set
  F > U >= c + <r, u> anyway. The multipliers bound that set themselves: the slacks z_j(w) >= 0 of the cuts and floors obey
  sum_j y_j z_j(w) <= U - c - <r, w>, at u too, so

      sigma ||w - u|| <= sum_j y_j |z_j(w) - z_j(u)| <= 2 (U - c - <r, u>) + ||r|| ||w - u||,

  sigma^2 being the least eigenvalue of sum_j y_j^2 b_j b_j', b_j = (slope_j, -e_g, norm_weight_j), after all but w is
  eliminated. Hence ``||w - u|| <= 2 (U - c - <r, u>) / (sigma - ||r||)``.

All statements hold up to float64 rounding of the sums themselves, for which an allowance is taken off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.ambiguity import vector_norm
from models.cut_model import CutModel
from models.problem import FloatArray, TransportNorm

_EPS = float(np.finfo(np.float64).eps)
_CORRECTIONS = 4
_FAR = 1e6


def lower_bound(model: CutModel, multipliers: FloatArray, reference: FloatArray) -> float:
    """Lower bound on ``min F`` from any multipliers (m,) of the cuts; at least 0, since no hinge risk is negative.

    Parameters
    ----------
    model : the cuts. multipliers : (m,), need be neither feasible nor optimal. reference : (D,) any point, best near
    the minimiser.
    """
    if model.site.shape[0] == 0:
        return 0.0
    cuts = _normalised(model, multipliers)
    used = np.asarray(model.slope.any(axis=0))
    for _ in range(_CORRECTIONS):
        cuts = _corrected(model, cuts, used)
    slope, norm_weight = _sums(model, cuts)
    excess = max(float(vector_norm(slope[: model.n_features], model.transport_norm)) - norm_weight, 0.0)
    tilt = slope.copy()
    support = float(model.shares @ model.floor)
    left = 1.0
    if support > 0:
        tilt[: model.n_features] = 0.0
        left = support / (support + excess)
    height = float(cuts @ model.offset + tilt @ reference)
    rounding = 8 * _EPS * float(cuts @ (np.abs(model.offset) + np.abs(model.slope) @ np.abs(reference)))
    return max(0.0, left * (height - _charge(model, cuts, used, tilt, reference, height) - rounding))


def _sums(model: CutModel, cuts: FloatArray) -> tuple[FloatArray, float]:
    """Slope v (D,) and norm weight Z of the weighted sum."""
    return cuts @ model.slope, float(cuts @ model.norm_weight + model.floors_left(cuts) @ model.floor)


def _normalised(model: CutModel, multipliers: FloatArray) -> FloatArray:
    """Multipliers clipped at 0 and, where a site's sum is above its weight, scaled down to it."""
    cuts = np.maximum(np.nan_to_num(multipliers), 0.0)
    sums = np.bincount(model.site, weights=cuts, minlength=model.shares.shape[0])
    scale = np.divide(model.shares, sums, out=np.ones_like(sums), where=sums > model.shares)
    return np.asarray(cuts * scale[model.site])


def _rows(model: CutModel, used: NDArray[np.bool_]) -> FloatArray:
    """Rows (slope_j, e_g, norm_weight_j) of the cuts and (0, e_g, floor_g) of the floors."""
    m, n_sites, inner = model.site.shape[0], model.shares.shape[0], int(used.sum())
    rows = np.zeros((m + n_sites, inner + n_sites + 1))
    rows[:m, :inner] = model.slope[:, used]
    rows[np.arange(m), inner + model.site] = 1.0
    rows[m:, inner:-1] = np.eye(n_sites)
    rows[:, -1] = np.concatenate([model.norm_weight, model.floor])
    return rows


def _corrected(model: CutModel, cuts: FloatArray, used: NDArray[np.bool_]) -> FloatArray:
    """Nearest multipliers, relative to their size, whose slope the same norm weight covers; clipped, normalised."""
    slope, norm_weight = _sums(model, cuts)
    surplus = slope.copy()
    surplus[: model.n_features] -= nearest_in_ball(slope[: model.n_features], norm_weight, model.transport_norm)
    if not surplus.any():
        return cuts
    rows = _rows(model, used)
    weights = np.concatenate([cuts, model.floors_left(cuts)])
    change = np.concatenate([surplus[used], np.zeros(model.shares.shape[0] + 1)])
    spread = (rows.T * weights) @ rows
    scale = 1.0 / np.sqrt(np.maximum(spread.diagonal(), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(spread * scale[:, None] * scale)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > 1e-14 * values[-1])
    shift = scale * (vectors @ (inverse * (vectors.T @ (scale * change))))
    return _normalised(model, (weights * (1.0 - rows @ shift))[: model.site.shape[0]])


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
    drop = max(float(drops[np.count_nonzero(falling > drops) - 1]), 0.0)
    return np.asarray(np.sign(vector) * np.maximum(np.abs(vector) - drop, 0.0))


def _charge(
    model: CutModel, cuts: FloatArray, used: NDArray[np.bool_], tilt: FloatArray, reference: FloatArray, height: float
) -> float:
    """What the tilt can take off the bound; infinite where it is no rounding and nothing bounds the set."""
    size = float(np.sqrt(tilt @ tilt))
    if size == 0:
        return 0.0
    least = _least_stretch(model, cuts, used)
    if least > size:
        return size * 2 * max(model.value(reference) - height, 0.0) / (least - size)
    if size > 64 * _EPS * float(cuts @ np.abs(model.slope).sum(axis=1)):
        return float("inf")
    return size * _FAR * (1.0 + float(np.sqrt(reference @ reference)))


def _least_stretch(model: CutModel, cuts: FloatArray, used: NDArray[np.bool_]) -> float:
    """The sigma of the module's text; 0 where the multipliers leave a direction open."""
    inner = int(used.sum())
    weighted = _rows(model, used) * np.concatenate([cuts, model.floors_left(cuts)])[:, None]
    gram = weighted.T @ weighted
    cross = gram[:inner, inner:]
    values = np.linalg.eigvalsh(gram[:inner, :inner] - cross @ np.linalg.pinv(gram[inner:, inner:]) @ cross.T)
    return float(np.sqrt(max(values[0] - 1e-13 * values[-1], 0.0))) if inner else 0.0
