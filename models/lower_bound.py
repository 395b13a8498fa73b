r"""A lower bound on the least risk that follows from cuts by arithmetic alone, whatever solver found the multipliers.

Take multipliers y >= 0 whose sum over the cuts of site g (its zero cut among them) is a_g. Then

    F(w) >= l(w) = sum_j y_j (offset_j + <slope_j, w>) = c + <v, w>     for every w.

With v = 0 the number c is a lower bound on F everywhere: no compact set needed, intercept or not, radius zero or not.
So the multipliers are first corrected, by the least change relative to their size, until v vanishes. What rounding
leaves of v (or all of it where the correction would make a multiplier negative) is charged over the set of the w at
which the cut model is not above its value U at some reference point u; outside that set F > U >= l(u) anyway. The
multipliers bound that set themselves: the slacks z_j(w) = t_g - (offset_j + <slope_j, w>) >= 0, t_g being the model of
site g at w, obey sum_j y_j z_j(w) <= U - l(w), at u too, so

    sigma ||w - u|| <= sum_j y_j |z_j(w) - z_j(u)| <= 2 (U - l(u)) + ||v|| ||w - u||,

sigma^2 being the least eigenvalue of sum_j y_j^2 (slope_j, -e_g)(slope_j, -e_g)' after the t_g are eliminated. Hence
``||w - u|| <= 2 (U - l(u)) / (sigma - ||v||)``. All statements hold up to float64 rounding of the sums themselves, for
which an allowance is taken off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.cut_model import CutModel
from models.problem import FloatArray

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
    n_sites = model.shares.shape[0]
    if model.site.shape[0] == 0:
        return 0.0
    used = np.asarray(model.slope.any(axis=0))
    rows, weights = _rows(model, used), _normalised(model, multipliers)
    target = np.concatenate([np.zeros(int(used.sum())), model.shares])
    for _ in range(_CORRECTIONS):
        weights = _corrected(rows, weights, target)
    weights = _normalised(model, weights[:-n_sites])
    cuts = weights[:-n_sites]
    slope = cuts @ model.slope
    height = float(cuts @ (model.offset + model.slope @ reference))
    tilt = float(np.sqrt(slope @ slope))
    reach = _reach(rows, weights, n_sites, tilt, 2 * (model.value(reference) - height))
    if reach is None:
        if tilt > 64 * _EPS * float(cuts @ np.abs(model.slope).sum(axis=1)):
            return 0.0
        reach = _FAR * (1.0 + float(np.sqrt(reference @ reference)))
    rounding = 8 * _EPS * float(cuts @ (np.abs(model.offset) + np.abs(model.slope) @ np.abs(reference)))
    return max(0.0, height - tilt * reach - rounding)


def _rows(model: CutModel, used: NDArray[np.bool_]) -> FloatArray:
    """Rows (slope_j, e_g) of the cuts and (0, e_g) of the zero cuts."""
    m, n_sites = model.site.shape[0], model.shares.shape[0]
    rows = np.zeros((m + n_sites, int(used.sum()) + n_sites))
    rows[:m, :-n_sites] = model.slope[:, used]
    rows[np.arange(m), rows.shape[1] - n_sites + model.site] = 1.0
    rows[m:, -n_sites:] = np.eye(n_sites)
    return rows


def _site_sums(model: CutModel, cuts: FloatArray) -> FloatArray:
    return np.bincount(model.site, weights=cuts, minlength=model.shares.shape[0]).astype(np.float64)


def _normalised(model: CutModel, multipliers: FloatArray) -> FloatArray:
    """Multipliers clipped at 0 and, where a site's sum is above its weight, scaled down to it; the zero cuts last."""
    cuts = np.maximum(np.nan_to_num(multipliers), 0.0)
    sums = _site_sums(model, cuts)
    scale = np.divide(model.shares, sums, out=np.ones_like(sums), where=sums > model.shares)
    cuts = cuts * scale[model.site]
    return np.concatenate([cuts, np.maximum(model.shares - _site_sums(model, cuts), 0.0)])


def _corrected(rows: FloatArray, weights: FloatArray, target: FloatArray) -> FloatArray:
    """Nearest weights, relative to their size, that meet ``rows' weights = target``, clipped at 0."""
    excess = rows.T @ weights - target
    spread = (rows.T * weights) @ rows
    scale = 1.0 / np.sqrt(np.maximum(spread.diagonal(), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(spread * scale[:, None] * scale)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > 1e-14 * values[-1])
    shift = scale * (vectors @ (inverse * (vectors.T @ (scale * excess))))
    return np.asarray(np.maximum(weights * (1.0 - rows @ shift), 0.0))


def _reach(rows: FloatArray, weights: FloatArray, n_sites: int, tilt: float, twice_gap: float) -> float | None:
    """Radius of the set around the reference point; None where the multipliers do not bound it."""
    weighted = rows * weights[:, None]
    gram = weighted.T @ weighted
    heights = gram.diagonal()[-n_sites:]
    cross = gram[:-n_sites, -n_sites:]
    inverse = np.divide(1.0, heights, out=np.zeros_like(heights), where=heights > 0)
    values = np.linalg.eigvalsh(gram[:-n_sites, :-n_sites] - (cross * inverse) @ cross.T)
    least = float(values[0] - 1e-13 * values[-1])
    if least <= 0 or np.sqrt(least) <= tilt:
        return None
    return max(twice_gap, 0.0) / (float(np.sqrt(least)) - tilt)
